"""The LiteRT model inside a version answers few sentences as the graph does."""

import importlib.util
import json
import os
import shutil

import numpy as np
import pytest

from export import __main__ as command
from export.certificate import certificate
from export.server.few_sentences import FewSentences
from export.server.signature import Signature
from export.server.version import Version
from keras_transformer.runs.confidence import Calibration
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.versions import CERTIFICATE, LITERT
from tests.support.commands import assert_one_sentence, invoke
from tests.support.places import ROOT
from tests.support.runs import SENTENCES, random_run

ALONE = ("--signature", "serving_default")  # the others take most of the time
LONGEST = 24  # tokens of a source
REQUESTS = [[text] for text in (*SENTENCES, "", "  \u200b", "a" * 40, "two\nlines")] + [SENTENCES[4:6], SENTENCES[4:7]]


@pytest.fixture(scope="module")
def version(tmp_path_factory):
    """A version folder with a LiteRT model inside, of a calibrated run."""
    folder = tmp_path_factory.mktemp("few")
    run = random_run(folder / "run")
    Calibration((-2.0, -1.0, -0.1), (0.1, 0.4, 0.9), "a measure", 100).save(RunFolder(run).calibration)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificate, "MOST_SECONDS", 0.1)  # of what no test here reads
        result = invoke(command.app, run, "--to", folder / "model", "--litert", *ALONE, "--max-source-tokens", LONGEST)
    assert result.exit_code == 0, result.output
    return folder / "model" / "1"


@pytest.fixture(scope="module")
def loaded(version):
    return Version(version)


@pytest.fixture(scope="module")
def graph(version):
    """The version without its LiteRT model."""
    graph = Version(version)
    graph._few = None
    return graph


def answer(version, texts):
    signature = version.signatures["serving_default"]
    inputs = {"text": np.array([text if isinstance(text, bytes) else text.encode() for text in texts], object)}
    return version.run(signature, ("confidence", "is_cut", "score", "translation", "truncated"), inputs)


@pytest.mark.release
def test_few_sentences_get_the_answer_of_the_graph(loaded, graph):
    for texts in REQUESTS:
        ours, theirs = answer(loaded, texts), answer(graph, texts)
        assert ours["translation"].tolist() == theirs["translation"].tolist()
        assert ours["is_cut"].tolist() == theirs["is_cut"].tolist()
        assert ours["truncated"].tolist() == theirs["truncated"].tolist()
        np.testing.assert_allclose(ours["score"], theirs["score"], atol=1e-4)
        np.testing.assert_allclose(ours["confidence"], theirs["confidence"], atol=1e-4)
        assert {name: array.dtype for name, array in ours.items()} == {n: a.dtype for n, a in theirs.items()}


@pytest.mark.release
def test_a_damaged_litert_model_is_logged_and_the_graph_answers(version, graph, tmp_path, caplog):
    folder = tmp_path / "1"
    folder.symlink_to(version)
    (version / LITERT / "litert.json").rename(tmp_path / "litert.json")
    (version / LITERT / "litert.json").write_text("{}")
    try:
        damaged = Version(folder)
    finally:
        (tmp_path / "litert.json").replace(version / LITERT / "litert.json")
    assert "litert.json is damaged" in caplog.text
    assert answer(damaged, SENTENCES[:1])["translation"] == answer(graph, SENTENCES[:1])["translation"]


def test_a_litert_model_beside_a_graph_in_bfloat16_is_refused(tmp_path):
    result = invoke(command.app, tmp_path, "--to", tmp_path / "exports", "--litert", "--precision", "bfloat16")
    assert_one_sentence(result, "--litert", "bfloat16")


def test_without_litert_nothing_is_exported_that_it_would_have_to_run(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *_: None)
    for options in (["--litert"], ["--format", "litert"]):
        result = invoke(command.app, tmp_path, "--to", tmp_path / "exports", *options)
        assert_one_sentence(result, "ai-edge-litert", "pip install")


@pytest.mark.release
def test_an_export_with_a_litert_model_is_compared_with_it(version):
    certificate = json.loads((version / CERTIFICATE).read_text())
    by_litert = [check for check in certificate["equality"] if check["runtime"].endswith("by LiteRT")]
    assert len(by_litert) == 2 and all(check["same"] == len(SENTENCES) for check in by_litert)


@pytest.fixture(scope="module")
def few():
    """The LiteRT model in the box."""
    pytest.importorskip("ai_edge_litert")
    return FewSentences(ROOT / "presets/multi30k_en_de/litert")


def test_litert_is_asked_for_few_short_lines_of_the_plain_signature_alone(few):
    """A text of as many bytes as the model reads tokens has its tokens counted."""
    plain, most = Signature("serving_default", {}, {}, {}), few._translator.description.max_source_tokens

    def can_run(*texts, signature=plain, **more):
        return few.can_run(signature, {"text": np.array([text.encode() for text in texts], object), **more})

    assert can_run("") and can_run("a man", "a dog") and can_run("été")
    assert not can_run() and not can_run("a", "b", "c") and not can_run("a\nb")
    words = "a dog " * (most // 2)
    assert len(words) > most and can_run(words[: most + 6]) and not can_run(words) and not can_run("a", words)
    assert not few.can_run(plain, {"text": np.array([b"\xff" * most], object)})  # the graph has an answer to it
    assert not can_run("a", signature=plain._replace(name="translate")) and not can_run("a", beam_size=np.array([4]))


def test_each_text_is_searched_alone_and_has_its_columns_in_the_types_of_the_graph(few):
    """A text that is no UTF-8 is left to the graph."""
    lines = ["Two dogs run.", "Ein Café."]
    names = ("is_cut", "translation", "score", "confidence")
    found = few.run(names, {"text": np.array([line.encode() for line in lines], object)})
    expected = [few._translator.translate([line])[0] for line in lines]
    assert [found[name].dtype for name in names] == [bool, object, np.float32, np.float32] and list(found) == [*names]
    assert found["translation"].tolist() == [translation.text.encode() for translation in expected]
    for name in ("is_cut", "score", "confidence"):
        assert found[name].tolist() == pytest.approx([getattr(translation, name) for translation in expected])
    assert list(few.run(("score",), {"text": np.array([b"a"], object)})) == ["score"]
    with pytest.raises(UnicodeError):
        few.run(names, {"text": np.array([b"\xff"], object)})


def test_a_file_that_is_emptied_while_it_is_served_changes_no_answer(few, tmp_path):
    """The first sentence of another length is searched in a part of the file that was not yet read."""
    folder = shutil.copytree(ROOT / "presets/multi30k_en_de/litert", tmp_path / "litert", copy_function=shutil.copy)
    served = FewSentences(folder)
    os.truncate(folder / "search.tflite", 0)
    lines = ["a dog", "Two young men in blue shirts play football on a large green field near a river in the city."]
    for line in lines:
        inputs = {"text": np.array([line.encode()], object)}
        assert served.run(("translation",), inputs) == few.run(("translation",), inputs)
