"""`keras_transformer explain`: a page in one file, with what was asked."""

import json
import re

import pytest

from keras_transformer.commands.explain import app
from keras_transformer.translation.explainer import Explainer, Explanation
from tests.support.commands import assert_one_sentence, invoke
from tests.support.runs import SENTENCES

SENTENCE = f"{SENTENCES[0]} </script><b>"


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="page-data">(.*?)</script>', page, re.DOTALL)[1])


@pytest.mark.slow
def test_it_writes_one_file_with_the_explanation_of_what_was_asked(random_folder, tmp_path):
    page = tmp_path / "page.html"
    options = ["--beam-size", "3", "--n-best", "2", "--extra-length", "5", "--target-prefix", "two"]
    result = invoke(app, random_folder, SENTENCE, "--to", page, *options)
    assert result.exit_code == 0 and result.stdout == f"{page}\n"
    explanation = data_of(page.read_text(encoding="utf-8"))["explanation"]
    assert explanation["source"] == SENTENCE
    asked = {"beam_size": 3, "n_best": 2, "extra_length": 5, "target_prefix": "two"}
    assert asked.items() <= explanation["options"].items()
    assert len(explanation["translations"]) == 2
    assert all(one["text"].startswith("two") for one in explanation["translations"])
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


@pytest.fixture
def asked(monkeypatch):
    """What the Explainer is asked: the run, how to search, the sentence and the prefix, in order."""
    calls = []

    def load(*arguments):
        calls.extend(arguments)
        return type("Silent", (), {"explain": explain})

    def explain(sentence, prefix):
        calls.extend([sentence, prefix])
        return Explanation(sentence, {}, [], False, [], {}, [])

    monkeypatch.setattr(Explainer, "load", load)
    return calls


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sentence", "options", "words"),
    [
        (" ", [], ["blank"]),
        ("one", ["--beam-size", "0"], ["beam_size"]),
        ("one", ["--to", "no/such/folder/page.html"], ["no/such/folder"]),
    ],
)
def test_a_mistake_gets_one_sentence_and_no_file(random_folder, tmp_path, sentence, options, words):
    to = [] if "--to" in options else ["--to", tmp_path / "page.html"]
    assert_one_sentence(invoke(app, random_folder, sentence, *to, *options), *words)
    assert not list(tmp_path.iterdir())


def test_a_missing_run_gets_one_sentence(tmp_path):
    result = invoke(app, tmp_path / "none", "one", "--to", tmp_path / "page.html")
    assert_one_sentence(result, tmp_path / "none")


def test_no_page_takes_the_place_of_a_file_of_the_run(random_folder):
    path = random_folder / "model.json"
    before = path.read_bytes()
    result = invoke(app, random_folder, SENTENCES[0], "--to", path)
    assert_one_sentence(result, f"--to {path} is a file of the run")
    assert path.read_bytes() == before
