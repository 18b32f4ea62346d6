"""One of each kind of file, as an earlier commit wrote it: each opens, and gives what that commit recorded."""

import json
import shutil
import tarfile

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_transformer as kt
from tests.support.commands import invoke
from tests.support.places import ROOT
from tests.support.runs import metrics_of

FOLDER = ROOT / "tests/data/written_by_ff3e6823"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
LINES = [line["source"] for line in EXPECTED["trained"]]
ROUNDING = 1e-4  # of a score, from one processor to another

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports")
    with tarfile.open(FOLDER / "exports.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def assert_recorded(name, translations, fields=("text", "score", "ids", "confidence")):
    expected = EXPECTED[name]
    assert [found.text for found in translations] == [line["output"] for line in expected]
    for field in fields[1:]:
        values = [line[field] for line in expected]
        assert [getattr(found, field) for found in translations] == (
            list(map(tuple, values)) if field == "ids" else pytest.approx(values, abs=ROUNDING)
        )


def test_a_run_folder_translates():
    assert_recorded("trained", kt.Translator.load(FOLDER / "trained").translate(LINES))


def test_a_run_folder_opens_as_its_model_and_tokenizer():
    model, tokenizer = kt.load_run(FOLDER / "trained")
    assert isinstance(model, kt.Transformer)
    assert tokenizer.decode(tokenizer.encode("twenty-one")) == "twenty-one"


@pytest.mark.nightly
def test_a_run_continues_from_its_checkpoint(tmp_path):
    from train.__main__ import app

    shutil.copytree(FOLDER / "trained", tmp_path / "trained")
    config = (FOLDER / "trained/config.toml").read_text(encoding="utf-8")
    (tmp_path / "run.toml").write_text(config.replace('"trained"', f'"{tmp_path / "trained"}"'), encoding="utf-8")
    more = ("training.steps=610", "training.log_every=1")
    result = invoke(app, tmp_path / "run.toml", *(word for option in more for word in ("--set", option)))
    assert result.exit_code == 0, result.output
    losses = [line["train/loss"] for line in metrics_of(tmp_path / "trained") if "train/loss" in line]
    assert losses == pytest.approx(EXPECTED["trained, 10 more steps"], rel=1e-3)


def test_a_preset_translates():
    assert_recorded("preset", kt.Translator.from_preset(FOLDER / "preset").translate(LINES))
    assert isinstance(kt.Transformer.from_preset(FOLDER / "preset"), kt.Transformer)


def test_a_litert_export_translates(exports):
    assert_recorded("litert", kt.LiteTranslator(exports / "litert").translate(LINES))


def test_a_saved_model_translates(exports):
    from export.translate import app

    import tensorflow_text  # noqa: F401  isort: skip

    loaded = tf.saved_model.load(str(exports / "saved_model" / "1"))
    outputs = loaded.signatures["serving_default"](text=tf.constant(LINES))
    expected = EXPECTED["saved_model"]
    assert [text.decode() for text in outputs["translation"].numpy()] == [line["output"] for line in expected]
    for name in ("score", "confidence"):
        assert outputs[name].numpy().tolist() == pytest.approx([line[name] for line in expected], abs=ROUNDING)
    result = invoke(app, exports / "saved_model", stdin="".join(f"{line}\n" for line in LINES))
    assert result.stdout.splitlines() == [line["output"] for line in expected]


@pytest.mark.parametrize("name", ["transformer", "kinds", "recurrent"])
def test_a_keras_file_opens_as_the_same_function(name):
    recorded = EXPECTED["keras"]
    inputs = {name: np.array(values, "int32") for name, values in recorded["inputs"].items()}
    model = keras.models.load_model(FOLDER / f"{name}.keras")
    assert type(model) is (kt.RecurrentModel if name == "recurrent" else kt.Transformer)
    np.testing.assert_allclose(model(inputs), recorded[name], atol=1e-3)
    if name == "transformer":
        evaluated = model.evaluate(inputs, np.array(recorded["labels"], "int32"), verbose=0)
        assert evaluated == pytest.approx(recorded["transformer, evaluated"], rel=1e-3)
        assert int(model.optimizer.iterations) == recorded["transformer, updates"]
