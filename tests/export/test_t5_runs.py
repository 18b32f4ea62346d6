"""What leaves a T5 or a MADLAD-400 that was imported translates as its run does, in every format that has it."""

import functools
import json

import numpy as np
import pytest

import keras_transformer as kt
from export import __main__ as command
from export.graph.served_graph import ServedGraph
from keras_transformer.commands.translate import app as translate_app
from keras_transformer.models.imported.folder import import_folder, write_run
from keras_transformer.runs.saved_run import load_run
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.scorer import Scorer
from keras_transformer.translation.translator import Translator
from tests.support.commands import assert_one_sentence, invoke
from tests.support.exports import asker
from tests.support.peers import needs
from tests.support.runs import SENTENCES
from tests.support.t5 import MADLAD, MT5, T5, t5_folder

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("graphs_as_written")]
LONGEST, OPTIONS = 200, SearchOptions(2, 1.0, extra_length=6, length_normalization="tokens")
HOW = "--max-source-tokens", LONGEST, "--extra-length", 6, "--beam-size", 2
LINES = [*SENTENCES[:2], "caf\u00e9 \u732b", "", "123"]
TAGS = {T5: "translate English to German: ", MADLAD: "<2de> ", MT5: ""}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """From a kind of model to an imported run of it."""
    folder, made = tmp_path_factory.mktemp("t5"), {}

    def run(kind):
        if kind not in made:
            lines = [TAGS[kind] + line for line in SENTENCES[:3]]
            write_run(import_folder(t5_folder(folder / f"{kind}_there", kind)), folder / kind, lines)
            made[kind] = folder / kind
        return made[kind]

    return run


@pytest.fixture(scope="module")
def expected(runs):
    """From a kind of model to what its run makes of LINES."""

    def translate(kind):
        return Translator.load(runs(kind), OPTIONS, max_source_tokens=LONGEST).translate(LINES, **to_german(kind))

    return functools.cache(translate)


def to_german(kind):
    return {} if kind == MT5 else {"target_language": "de"}


def texts(translations):
    return [best.text for best in translations]


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [T5, MADLAD, MT5])
def test_the_served_graph_answers_as_the_run_does(eager, runs, expected, kind):
    languages = import_folder(runs(kind).with_name(f"{kind}_there")).languages
    ask = asker(ServedGraph(*load_run(runs(kind)), OPTIONS, LONGEST, languages=languages))
    named = {name: [value] for name, value in to_german(kind).items()}
    found = ask("translate", LINES, **named)
    assert [text.decode() for text in found["translations"][:, 0]] == texts(expected(kind))
    np.testing.assert_allclose(found["scores"][:2, 0], [best.score for best in expected(kind)[:2]], atol=1e-4)
    tagged = ask("translate", [TAGS[kind] + line for line in LINES[:2]])["translations"][:, 0]
    assert [text.decode() for text in tagged] == texts(expected(kind)[:2])
    scored = Scorer.load(runs(kind), max_source_tokens=LONGEST).score(LINES[:3], SENTENCES[3:6], **to_german(kind))
    answer = ask("score", LINES[:3], translation=SENTENCES[3:6], **named)
    np.testing.assert_allclose(answer["log_probability"], [pair.log_probability for pair in scored], atol=1e-3)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [T5, MADLAD])
@pytest.mark.parametrize("quantization", [None, "int8"])
def test_a_litert_model_is_told_its_language_as_the_run_is(runs, expected, kind, quantization, tmp_path):
    how = "--no-check", *(("--quantization", quantization) if quantization else ())
    result = invoke(command.app, runs(kind), "--to", tmp_path / "lite", "--format", "litert", *HOW, *how)
    assert result.exit_code == 0, result.output
    lite = kt.LiteTranslator(tmp_path / "lite")
    found = texts(translations := lite.translate(LINES, **to_german(kind)))
    if quantization is None:
        assert found == texts(expected(kind))
    scores = ([best.score for best in of_lines[:2]] for of_lines in (translations, expected(kind)))
    np.testing.assert_allclose(*scores, atol=0.15 if quantization else 1e-3)
    assert found[:2] == texts(lite.translate([TAGS[kind] + line for line in LINES[:2]]))


@pytest.mark.nightly
def test_a_version_names_its_languages_and_every_runtime_translates_as_the_run(runs, expected, tmp_path):
    """The export publishes it only if TensorFlow's C API and the local server do."""
    how = "--signature", "serving_default", "--target-language", "de"
    result = invoke(command.app, runs(MADLAD), "--to", tmp_path / "served", *HOW, *how)
    assert result.exit_code == 0, result.output
    languages = json.loads((tmp_path / "served/1/assets.extra/languages.json").read_text("utf-8"))
    assert languages["target"]["de"] == "\u2581 <2de>" and languages["default_target"] == "de"
    piped = kt.pipeline("translation", model=str(tmp_path / "served"))
    assert [each["translation_text"] for each in piped(LINES[:2])] == texts(expected(MADLAD)[:2])


@pytest.mark.nightly
@needs("ctranslate2")
@pytest.mark.parametrize("kind", [T5, MADLAD])
def test_ctranslate2_scores_as_the_run_does(runs, kind, tmp_path):
    """The export compares the scores itself; a user writes the tag, or the words of the task, before the text."""
    result = invoke(command.app, runs(kind), "--to", tmp_path / "model", "--format", "ctranslate2", *HOW)
    assert result.exit_code == 0, result.output


@pytest.mark.nightly
def test_commands_and_the_pipeline_take_the_language(runs):
    stdin = "".join(f"{line}\n" for line in LINES[:2])
    result = invoke(translate_app, runs(T5), "--from", "en", "--to", "de", stdin=stdin)
    piped = kt.pipeline("translation_en_to_de", model=str(runs(T5)))
    translator = Translator.load(runs(T5))
    expected = texts(translator.translate(LINES[:2], source_language="en", target_language="de"))
    assert result.stdout.split("\n")[:-1] == expected
    assert [each["translation_text"] for each in piped(LINES[:2])] == expected
    assert_one_sentence(invoke(translate_app, runs(T5), "--from", "de", stdin=stdin), "this model reads en")
