"""A preset is what was saved, in keras-hub's layout, and is opened wherever a run folder is."""

import importlib
import json
import pathlib
import shutil

import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.commands.explain import app as explain_app
from keras_transformer.ground.files import sha256_of
from keras_transformer.runs.confidence import Calibration
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run
from tests.support.commands import assert_one_sentence, invoke
from tests.support.models import randomise
from tests.support.runs import SENTENCES

SEARCH = kt.SearchOptions(beam_size=3, length_penalty=0.2, extra_length=6)
SHAPE = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16}


@pytest.fixture(scope="module")
def translator(random_folder):
    return kt.Translator.load(random_folder, SEARCH)


@pytest.fixture(scope="module")
def preset(translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("presets") / "deep" / "random"
    translator.save_to_preset(folder, check_lines=SENTENCES)
    return folder


def test_a_preset_knows_how_long_the_sentences_of_its_training_were(pair, tmp_path):
    kt.Translator(*pair, trained_tokens=77).save_to_preset(tmp_path)
    assert kt.Translator.from_preset(tmp_path).trained_tokens == 77


def test_its_files_are_those_of_keras_hub_s_layout(preset, pair):
    names = {str(path.relative_to(preset)) for path in preset.rglob("*") if path.is_file()}
    assert names >= {
        *("config.json", "tokenizer.json", "metadata.json", "model.weights.h5", "inference.json"),
        "assets/tokenizer/tokenizer.model",
    }
    model, metadata = (json.loads((preset / name).read_text()) for name in ("config.json", "metadata.json"))
    assert model["registered_name"] == "keras_transformer>Transformer"
    assert kt.TransformerConfig(**model["config"]["config"]) == pair[0].model_config
    assert metadata["parameter_count"] == pair[0].count_params()
    for name in ("config.json", "tokenizer.json"):  # each path leads to the class, as Keras looks for one
        written = json.loads((preset / name).read_text())
        assert getattr(importlib.import_module(written["module"]), written["class_name"]) in (
            kt.Transformer,
            kt.Tokenizer,
        )


@pytest.mark.release
def test_keras_hub_opens_its_model(preset, pair):
    from keras_hub.src.utils.preset_utils import get_preset_loader  # public only behind classes of its own

    loaded = get_preset_loader(str(preset)).load_backbone(kt.Transformer, load_weights=True)
    assert_same_weights(loaded, pair[0])


def assert_same_weights(one, other):
    assert one.model_config == other.model_config
    for mine, its in zip(one.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.slow
def test_a_translator_searches_as_the_preset_says_and_translates_alike(preset, translator, eager):
    opened = kt.Translator.from_preset(preset)
    assert opened.options == SEARCH
    assert opened.translate(SENTENCES[:2]) == translator.translate(SENTENCES[:2])
    assert kt.Translator.from_preset(preset, kt.SearchOptions(beam_size=1)).options.beam_size == 1


def test_a_model_and_its_run_are_read_from_either_layout(preset, pair, random_folder):
    for folder in (preset, str(random_folder)):
        assert_same_weights(kt.Transformer.from_preset(folder), pair[0])
        model, tokenizer = kt.load_run(folder)
        assert_same_weights(model, pair[0])
        assert tokenizer.model_bytes == pair[1].model_bytes


@pytest.mark.parametrize("kind", [kt.Transformer, kt.RecurrentModel])
def test_a_model_alone_is_a_preset_of_its_class(kind, pair, tmp_path):
    sizes = {"d_ff": 16, "num_heads": 2} if kind is kt.Transformer else {}
    model = randomise(kind(kind.config_class(vocab_size=50, **SHAPE, **sizes)))
    model.save_to_preset(tmp_path)
    assert_same_weights(kind.from_preset(tmp_path), model)
    other = kt.RecurrentModel if kind is kt.Transformer else kt.Transformer
    with pytest.raises(kt.ConfigError, match=f"holds a {kind.__name__}, not a {other.__name__}: open it with"):
        other.from_preset(tmp_path)
    with pytest.raises(kt.ConfigError, match="has no assets/tokenizer/tokenizer.model"):
        kt.Translator.from_preset(tmp_path)


def test_half_precision_halves_the_file_and_rounds_each_weight_once(translator, pair, tmp_path):
    translator.save_to_preset(tmp_path, dtype="float16")
    loaded, half = kt.Transformer.from_preset(tmp_path), RunFolder(tmp_path).weights.stat().st_size
    for weight, original in zip(loaded.weights, pair[0].weights, strict=True):
        assert weight.dtype == "float32"
        assert np.array_equal(weight.numpy(), original.numpy().astype("float16").astype("float32"))
    translator.save_to_preset(tmp_path)
    assert half < RunFolder(tmp_path).weights.stat().st_size
    assert {path.name for path in tmp_path.glob("*.h5")} == {"model.weights.h5"}


def test_a_dtype_that_loses_a_weight_or_is_unknown_is_refused_before_anything_is_written(random_folder, tmp_path):
    model, tokenizer = load_run(random_folder)
    translator = kt.Translator(model, tokenizer)
    with pytest.raises(kt.ConfigError, match="float32 or float16"):
        translator.save_to_preset(tmp_path / "a", dtype="int8")
    weight = model.weights[0]
    weight.assign(np.full(weight.shape, 70_000.0))
    with pytest.raises(kt.ConfigError, match="too large for float16"):
        translator.save_to_preset(tmp_path / "a", dtype="float16")
    assert not (tmp_path / "a").exists()


def test_what_a_run_says_of_its_outputs_is_kept(tmp_path, pair):
    kt.save_run(*pair, tmp_path / "run", inference=kt.Inference("trees", {"beam_size": 7}, longest_source=90))
    kt.Translator.from_preset(tmp_path / "run").save_to_preset(tmp_path / "preset")
    inference = RunFolder(tmp_path / "preset").inference()
    assert kt.Translator.from_preset(tmp_path / "preset").options.beam_size == 7
    assert (inference.outputs, inference.search["beam_size"], inference.longest_source) == ("trees", 7, 90)


def test_a_preset_has_the_calibration_of_its_run_for_its_own_weights(pair, tmp_path):
    calibration = Calibration((-2.0, -1.0), (0.2, 0.9), "a measure", 100, "of other weights")
    translator = kt.Translator(*pair, calibration=calibration)
    translator.save_to_preset(tmp_path, dtype="float16")
    opened = kt.Translator.from_preset(tmp_path)
    assert opened.calibration == calibration._replace(weights=sha256_of(RunFolder(tmp_path).weights))
    assert 0.2 <= opened.translate(["the fox"])[0].confidence <= 0.9


@pytest.mark.slow
def test_a_command_opens_a_preset_and_does_not_write_over_it(preset, tmp_path):
    for path in ("config.json", "assets/tokenizer/tokenizer.model"):
        refused = invoke(explain_app, preset, SENTENCES[0], "--to", preset / path)
        assert_one_sentence(refused, f"{path} is a file of the run")
    page = invoke(explain_app, preset, SENTENCES[0], "--to", tmp_path / "page.html")
    assert page.exit_code == 0, page.output


def test_a_preset_and_a_run_do_not_overwrite_each_other(preset, translator, pair, tmp_path):
    with pytest.raises(kt.ConfigError, match="is a preset: save the run into another folder"):
        kt.save_run(*pair, preset)
    kt.save_run(*pair, tmp_path)
    for save in (translator.save_to_preset, pair[0].save_to_preset):
        with pytest.raises(kt.ConfigError, match="is a run folder: save the preset into another folder"):
            save(tmp_path)


def test_an_ensemble_is_no_preset(pair, tmp_path):
    with pytest.raises(kt.ConfigError, match="A preset holds one model, and this ensemble has 2: save one of them"):
        kt.Translator([pair[0], pair[0]], pair[1]).save_to_preset(tmp_path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"registered_name": "keras_hub>BertBackbone"}, "its class is 'keras_hub>BertBackbone'; this version knows"),
        ({"registered_name": ["os"]}, r"its class is \['os'\]; this version knows"),
        ({"config": 7}, "it has no configuration of a Transformer"),
        ({"config": {"config": {"d_model": -3}}}, "model.d_model is -3"),
        ({"config": {"config": {"depth": 3}}}, "fields that this version does not know: depth"),
    ],
)
def test_a_config_of_another_library_or_hand_is_one_sentence(change, sentence, preset, tmp_path):
    folder = shutil.copytree(preset, tmp_path / "preset")
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(values | change))
    for open_preset in (kt.load_run, kt.Transformer.from_preset, kt.Translator.from_preset):
        with pytest.raises(kt.ConfigError, match=f"config.json does not describe a model: .*{sentence}"):
            open_preset(folder)


def test_the_shapes_of_the_paper_are_no_presets_with_weights():
    with pytest.raises(kt.ConfigError, match=r"base is a shape without weights: kt.Transformer\(kt.preset\('base'\)\)"):
        kt.Transformer.from_preset("base")
    with pytest.raises(kt.ConfigError, match="There is no run folder nowhere.* hf://USER/MODEL names one"):
        kt.Translator.from_preset(pathlib.Path("nowhere"))
