"""An imported mBART in every engine: each translates as the run does, into the language that is asked."""

import numpy as np
import pytest

import keras_transformer as kt
from cluster.engines import GraphEngine
from export.__main__ import app
from export.client.client import ServingClient
from export.graph.served_graph import ServedGraph
from keras_transformer.lite.translator import LiteTranslator
from keras_transformer.models.imported.folder import import_folder, write_run
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run
from keras_transformer.runs.versions import LITERT
from keras_transformer.text.asks import Ask
from keras_transformer.translation.exported import ExportedTranslator
from keras_transformer.translation.translator import Translator
from tests.support.commands import invoke
from tests.support.exports import asker
from tests.support.mbart import FIFTY, ONE_TARGET, mbart_folder
from tests.support.runs import SENTENCES
from tests.support.servers import serving

LINES = [*SENTENCES[:5], "", "12", "two hundred and " * 30]
SEARCH = {"beam_size": 2, "extra_length": 8}
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("graphs_as_written")]


def imported(folder, kind):
    """A run of an imported model."""
    write_run(import_folder(mbart_folder(folder / "there", kind, 3.0)), run := folder / "run", SENTENCES[:3])
    inference = RunFolder(run).inference()
    inference._replace(search={**inference.search, **SEARCH}).save(run / "inference.json")
    return run


def exported(run, folder, *how):
    """Export a run, English to Romanian by default; the tests compare it themselves."""
    languages = "--source-language", "en", "--target-language", "ro"
    result = invoke(app, run, "--to", folder, *languages, "--max-source-tokens", "16", "--no-check", *how)
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Of a model that is told the target by a first token."""
    return imported(tmp_path_factory.mktemp("mbart"), FIFTY)


def told(translations):
    return [(each.text, pytest.approx(each.score, abs=1e-3)) for each in translations]


@pytest.mark.nightly
def test_every_engine_translates_as_the_run_does(run, tmp_path):
    names = "--signature", "serving_default", "--signature", "translate", "--litert"
    version = exported(run, tmp_path / "model", *names) / "1"
    translator = Translator.load(run, max_source_tokens=16)
    with serving(version.parent) as server:
        engines = ExportedTranslator(version), ServingClient(server.url), GraphEngine(str(version), 1)
        for engine in (*engines, LiteTranslator(version / LITERT)):
            for target in ("ro_RO", "ar_AR"):
                expected = translator.translate(LINES, source_language="en", target_language=target)
                assert told(engine.translate(LINES, source_language="en", target_language=target)) == told(expected)
            expected = translator.translate(LINES, source_language="en", target_language="ro")
            assert told(engine.translate(LINES)) == told(expected)


@pytest.mark.nightly
def test_a_model_of_one_target_is_told_the_source_by_a_last_token(eager, tmp_path):
    """In a served graph, which all engines share but LiteRT, and in LiteRT."""
    run = imported(tmp_path, ONE_TARGET)
    languages = RunFolder(run).inference().languages
    translator = Translator.load(run, max_source_tokens=16)
    served = ServedGraph(*load_run(run), translator.options, 16, languages=languages.by_default("en", "ro"))
    lite = LiteTranslator(exported(run, tmp_path / "lite", "--format", "litert"))
    for source in ("en", "de"):
        expected = translator.translate(LINES, source_language=source, target_language="ro")
        assert told(lite.translate(LINES, source_language=source, target_language="ro")) == told(expected)
        asked = [translator.told(Ask(source_language=source, target_language="ro"))] * len(LINES)
        pairs = list(zip(LINES, expected, strict=True))
        assert lite.align(pairs, asked) == translator.align(pairs, asked)
        found = asker(served)("translate", LINES, source_language=[source], target_language=["ro"])
        assert [text.decode() for text in found["translations"][:, 0]] == [each.text for each in expected]
    assert told(lite.translate(LINES[:5])) == told(translator.translate(LINES[:5], source_language="en"))


@pytest.mark.nightly
def test_a_litert_model_in_int8_translates(run, tmp_path):
    lite = LiteTranslator(exported(run, tmp_path / "lite", "--format", "litert", "--quantization", "int8"))
    expected = Translator.load(run, max_source_tokens=16).translate(
        SENTENCES[:5], source_language="en", target_language="ro"
    )
    found = lite.translate(SENTENCES[:5])
    same = np.mean([one.text == other.text for one, other in zip(found, expected, strict=True)])
    assert same >= 0.4 and all(np.isfinite(each.score) for each in found)


@pytest.mark.nightly
def test_a_pipeline_is_told_its_languages(run):
    languages = {"src_lang": "en", "tgt_lang": "ro"}
    pipeline = kt.pipeline("translation", model=str(run), **languages)
    expected = Translator.load(run).translate(SENTENCES[:2], source_language="en", target_language="ro")
    assert [each["translation_text"] for each in pipeline(SENTENCES[:2])] == [each.text for each in expected]
