"""An imported mBART in every engine: each translates as the run does, into the language that is asked."""

import numpy as np
import pytest

import keras_transformer as kt
from cluster.engines import GraphEngine
from export.__main__ import app
from export.client.client import ServingClient
from export.server.options import ServerOptions
from export.server.process import local_server
from export.versions import LITERT
from keras_transformer.lite.translator import LiteTranslator
from keras_transformer.models.imported.folder import import_folder, write_run
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.translation.exported import ExportedTranslator
from keras_transformer.translation.translator import Translator
from tests.support.commands import invoke
from tests.support.mbart import FIFTY, ONE_TARGET, mbart_folder
from tests.support.runs import SENTENCES

LINES = [*SENTENCES[:5], "", "12", "two hundred and " * 30]
SEARCH = {"beam_size": 2, "extra_length": 8}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=[FIFTY, ONE_TARGET])
def export(request, tmp_path_factory):
    """The export of an imported run, English to Romanian by default, and the run."""
    folder = tmp_path_factory.mktemp("mbart")
    write_run(import_folder(mbart_folder(folder / "there", request.param, 3.0)), run := folder / "run", SENTENCES[:3])
    inference = RunFolder(run).inference()
    inference._replace(search={**inference.search, **SEARCH}).save(run / "inference.json")
    how = ["--to", folder / "model", "--source-language", "en", "--target-language", "ro", "--litert"]
    names = ["--signature", "serving_default", "--signature", "translate", "--max-source-tokens", "16"]
    result = invoke(app, run, *how, *names)
    assert result.exit_code == 0 and "3 of 3 translations the same" in result.stdout, result.output
    return folder / "model" / "1", run


def told(translations):
    return [(each.text, pytest.approx(each.score, abs=1e-3)) for each in translations]


def test_every_engine_translates_as_the_run_does(export):
    version, run = export
    translator = Translator.load(run, max_source_tokens=16)
    targets = list(translator.languages.target)
    with local_server(version.parent, ServerOptions(port=0, grpc_port=0)) as server:
        engines = ExportedTranslator(version), ServingClient(server.url), GraphEngine(str(version), 1)
        for engine in (*engines, LiteTranslator(version / LITERT)):
            for target in {"ro_RO", targets[0]}:
                expected = translator.translate(LINES, source_language="en", target_language=target)
                assert told(engine.translate(LINES, source_language="en", target_language=target)) == told(expected)
            expected = translator.translate(LINES, source_language="en", target_language="ro")
            assert told(engine.translate(LINES)) == told(expected)


@pytest.mark.parametrize("export", [FIFTY], indirect=True)
def test_a_litert_model_in_int8_translates(export, tmp_path):
    _, run = export
    options = ["--format", "litert", "--quantization", "int8", "--max-source-tokens", "16"]
    codes = ["--source-language", "en", "--target-language", "ro"]
    result = invoke(app, run, "--to", tmp_path / "lite", *options, *codes)
    assert result.exit_code == 0, result.output
    lite, translator = LiteTranslator(tmp_path / "lite"), Translator.load(run, max_source_tokens=16)
    expected = translator.translate(SENTENCES[:5], source_language="en", target_language="ro")
    found = lite.translate(SENTENCES[:5])
    same = np.mean([one.text == other.text for one, other in zip(found, expected, strict=True)])
    assert same >= 0.4 and all(np.isfinite(each.score) for each in found)


@pytest.mark.parametrize("export", [FIFTY], indirect=True)
def test_a_pipeline_is_told_its_languages(export):
    _, run = export
    languages = {"src_lang": "en", "tgt_lang": "ro"}
    pipeline = kt.pipeline("translation", model=str(run), **languages)
    expected = Translator.load(run).translate(SENTENCES[:2], source_language="en", target_language="ro")
    assert [each["translation_text"] for each in pipeline(SENTENCES[:2])] == [each.text for each in expected]
