"""A run whose source and target have a SentencePiece model each: what leaves it translates as it does."""

import json
import re

import numpy as np
import pytest
import tensorflow as tf

from export import __main__ as command
from export.graph.served_graph import ServedGraph
from keras_transformer.ground.tokens import EOS
from keras_transformer.models.imported.folder import import_folder
from keras_transformer.runs.saved_run import load_run, save_run
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.explainer import Explainer
from keras_transformer.translation.exported import ExportedTranslator
from keras_transformer.translation.scorer import Scorer
from keras_transformer.translation.translator import Translator
from tests.support.commands import invoke
from tests.support.exports import asker
from tests.support.marian import MARIAN, SELF_ATTENTION, SSRU, best_by_marian, lines, pair_run

pytestmark = pytest.mark.release
OPTIONS, LONGEST = SearchOptions(beam_size=2, extra_length=4), 40
LINES = ["two hundred", ">>deu<< two hundred", ">>nld<<two hundred", ">>xyz<< fifty", "ninety </s>", "", "\u3000"]
ALONE = ("--signature", "serving_default")  # the others take most of the time
TARGETS = ["zweihundert", "", ">>deu<< neun", "<s> fünfzig", "xyz", "", "eins"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return pair_run(tmp_path_factory.mktemp("runs") / "run")


def test_the_served_graph_answers_as_the_run_does(run):
    ask = asker(ServedGraph(*load_run(run), OPTIONS, LONGEST))
    translator = Translator.load(run, OPTIONS, max_source_tokens=LONGEST)
    pieces, encode = translator.tokenizer.pieces(), translator.tokenizer.encode

    answer = ask("serving_default", LINES)
    assert [text.decode() for text in answer["translation"]] == [one.text for one in translator.translate(LINES)]
    expected = [translation.text for translation in translator.translate(LINES, prefixes=["neun"] * len(LINES))]
    assert [text.decode() for text in ask("translate", LINES, target_prefix=["neun"])["translations"][:, 0]] == expected

    with pytest.raises(tf.errors.InvalidArgumentError, match="has no piece"):
        ask("translate", LINES, target_prefix=["猫"])

    scored = Scorer.load(run, max_source_tokens=LONGEST).score(LINES, TARGETS)
    answer = ask("score", LINES, translation=TARGETS)
    np.testing.assert_allclose(answer["log_probability"], [pair.log_probability for pair in scored], atol=1e-4)
    assert [text.decode() for text in answer["pieces"]] == [" ".join(pair.pieces) for pair in scored]

    answer = ask("tokenize", LINES)
    expected = [" ".join(pieces[number] for number in [*encode(line), EOS]) for line in LINES[:5]]
    assert [text.decode() for text in answer["pieces"]] == [*expected, "", ""]

    explained = Explainer.load(run, OPTIONS).explain(LINES[1])
    answer = ask("explain", LINES[1:2])
    assert answer["source_pieces"][0].decode().split(" ") == explained.source_pieces
    assert answer["pieces"][0].decode().split(" ") == explained.translations[0].pieces


@pytest.mark.usefixtures("brief_latencies")
def test_every_runtime_translates_as_the_run_does(run, tmp_path):
    result = invoke(command.app, run, "--to", tmp_path / "served", "--extra-length", 12, *ALONE)
    assert result.exit_code == 0, result.output
    certificate = json.loads((tmp_path / "served/1/certificate.json").read_text(encoding="utf-8"))
    assert certificate["oldest_tensorflow"] == "2.12"


@pytest.mark.parametrize("name", [SELF_ATTENTION, SSRU])
def test_a_served_model_of_marian_gives_marians_translations_and_scores(name, tmp_path):
    model = import_folder(MARIAN / f"{name}.npz")
    save_run(model.transformer(), model.tokenizer, tmp_path / "run", lines("test.en"), model.inference())
    search = ("--beam-size", 6, "--length-penalty", 1, "--length-normalization", "tokens")
    result = invoke(command.app, tmp_path / "run", "--to", tmp_path / "served", "--no-check", *search, *ALONE)
    assert result.exit_code == 0, result.output
    found = ExportedTranslator(tmp_path / "served").translate(lines("test.en"))
    texts, scores = zip(*best_by_marian(name), strict=True)
    assert [translation.text for translation in found] == list(texts)
    np.testing.assert_allclose([translation.score for translation in found], scores, atol=1e-4)


def test_the_readme_of_ctranslate2_reads_both_sides_models(run, tmp_path, monkeypatch, capsys):
    pytest.importorskip("ctranslate2")
    folder = tmp_path / "model"
    result = invoke(command.app, run, "--to", folder, "--format", "ctranslate2", "--beam-size", 1, "--extra-length", 12)
    assert result.exit_code == 0, result.output
    assert {"source.spm", "target.spm"} < {file.name for file in folder.iterdir()}
    assert not (folder / "tokenizer.model").exists()
    [code] = re.findall(r"```python\n(.+?)```", (folder / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    lines = LINES[:4]
    limits = 'min_decoding_length=0, disable_unk=True, suppress_sequences=[["<pad>"], ["<s>"]]'
    code = code.replace('["A dog runs across the field."]', repr(lines)).replace("min_decoding_length=0", limits)
    exec(re.sub(r"max_decoding_length=\d+", "max_decoding_length=8", code), {})
    greedy = Translator.load(run, SearchOptions(beam_size=1, max_length=9, extra_length=12))
    assert eval(capsys.readouterr().out) == [translation.text for translation in greedy.translate(lines)]
