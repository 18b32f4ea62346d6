"""save_run and load_run are each other's inverse, and a folder is never half of one model and half of another."""

import os
import shutil

import h5py
import keras
import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.ground.files import write_atomically
from keras_transformer.model import Transformer, with_attention
from keras_transformer.pieces.tokenizer import train_tokenizer
from keras_transformer.recurrent.config import RecurrentConfig
from keras_transformer.recurrent.model import RecurrentModel
from keras_transformer.runs import saved_run
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import save_parts
from keras_transformer.translation.explainer import Explainer
from keras_transformer.translation.scorer import Scorer
from tests.support.models import randomise
from tests.support.runs import RUN_MODEL, SENTENCES, random_run

SIZES = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return kt.load_run(random_run(tmp_path_factory.mktemp("run") / "run"))[1]


def transformer_of(tokenizer, **options):
    config = kt.TransformerConfig(vocab_size=tokenizer.vocab_size, d_ff=16, num_heads=2, **SIZES)
    return randomise(Transformer(config, **options))


def recurrent_of(tokenizer):
    return randomise(RecurrentModel(RecurrentConfig(vocab_size=tokenizer.vocab_size, **SIZES)))


def clone_of(tokenizer):
    model = transformer_of(tokenizer)
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    return clone


@pytest.mark.parametrize("make", [transformer_of, recurrent_of, clone_of])
def test_what_is_saved_is_loaded(tokenizer, make, tmp_path):
    model = make(tokenizer)
    kt.save_run(model, tokenizer, tmp_path / "deep" / "run")
    loaded, loaded_tokenizer = kt.load_run(tmp_path / "deep" / "run")
    assert loaded.model_config == model.model_config
    assert loaded_tokenizer.model_bytes == tokenizer.model_bytes
    np.testing.assert_equal(loaded.get_weights(), model.get_weights())


def test_a_saved_run_says_what_it_writes_and_how_long_its_sentences_were(tokenizer, tmp_path):
    model, inference = transformer_of(tokenizer), kt.Inference("trees", {"beam_size": 7}, longest_source=90)
    kt.save_run(model, tokenizer, tmp_path, inference=inference)
    assert RunFolder(tmp_path).inference() == inference and kt.Translator.load(tmp_path).trained_tokens == 90
    with pytest.raises(kt.ConfigError, match="outputs is 'tree'"):
        kt.save_run(model, tokenizer, tmp_path, inference=kt.Inference("tree"))
    kt.save_run(model, tokenizer, tmp_path)
    assert RunFolder(tmp_path).inference() == kt.Inference()


@pytest.mark.nightly
def test_a_saved_run_searches_as_it_says_unless_it_is_told_otherwise(tokenizer, tmp_path):
    own = kt.SearchOptions(7, 1.0, length_normalization="tokens")
    search = {"beam_size": 7, "length_penalty": 1.0, "length_normalization": "tokens"}
    kt.save_run(transformer_of(tokenizer), tokenizer, tmp_path, inference=kt.Inference(search=search))
    assert kt.Translator.load(tmp_path).options == Explainer.load(tmp_path).options == own
    assert kt.Translator.load(tmp_path, kt.SearchOptions(2)).options == kt.SearchOptions(2)
    found = Scorer.load(tmp_path, length_penalty=0.5).options
    assert (found.length_penalty, found.length_normalization) == (0.5, "tokens")


@pytest.mark.parametrize("precision", ["mixed_bfloat16", "bfloat16"])
def test_a_model_of_another_precision_is_loaded_as_float32_with_its_values(tokenizer, precision, tmp_path):
    model = transformer_of(tokenizer, dtype=precision)
    kt.save_run(model, tokenizer, tmp_path)
    for one, other in zip(model.weights, kt.load_run(tmp_path)[0].weights, strict=True):
        assert other.dtype == "float32"
        np.testing.assert_array_equal(keras.ops.cast(one.value, "float32"), other.value)


def test_the_folder_is_checked_against_another_tokenizer(tokenizer, tmp_path):
    kt.save_run(transformer_of(tokenizer), tokenizer, tmp_path)
    train_tokenizer(["not the words of that run, but so many others"] * 9, tmp_path / "tokenizer.model", 290)
    with pytest.raises(kt.ConfigError, match="not the tokenizer that the weights were trained with"):
        kt.load_run(tmp_path)


def test_a_folder_can_be_written_again_without_the_old_check_lines(tokenizer, tmp_path):
    kt.save_run(transformer_of(tokenizer), tokenizer, tmp_path, check_lines=SENTENCES)
    assert RunFolder(tmp_path).check_lines.read_text(encoding="utf-8").splitlines() == list(SENTENCES)
    model = randomise(transformer_of(tokenizer))
    kt.save_run(model, tokenizer, tmp_path)
    assert not RunFolder(tmp_path).check_lines.exists()
    np.testing.assert_equal(kt.load_run(tmp_path)[0].get_weights(), model.get_weights())


def test_a_folder_that_is_half_overwritten_cannot_be_opened(tokenizer, tmp_path, monkeypatch):
    kt.save_run(transformer_of(tokenizer), tokenizer, tmp_path)

    def full(*args):
        raise OSError("disk full")

    monkeypatch.setattr(saved_run, "save_weights", full)
    with pytest.raises(OSError, match="disk full"):
        kt.save_run(transformer_of(tokenizer), tokenizer, tmp_path)
    with pytest.raises(kt.ConfigError, match=r"has no model\.json"):
        kt.load_run(tmp_path)


@pytest.mark.parametrize("write", ["text", "weights"])
def test_content_is_on_the_disk_before_it_takes_the_name(write, tokenizer, tmp_path, monkeypatch):
    model, events, replace = transformer_of(tokenizer), [], os.replace  # a power failure may lose what is not flushed
    monkeypatch.setattr(os, "fsync", lambda number: events.append(os.fstat(number).st_ino))
    monkeypatch.setattr(os, "replace", lambda part, path: (events.append(os.stat(part).st_ino), replace(part, path)))
    if write == "text":
        write_atomically(tmp_path / "text", "words")
    else:
        saved_run.save_weights(model, tmp_path / "model.weights.h5")
    flushed, renamed = events
    assert flushed == renamed


# What is refused, before anything is written


def refused(error, sentence, model, tokenizer, path, **options):
    with pytest.raises(error, match=sentence):
        kt.save_run(model, tokenizer, path, **options)
    assert not path.exists()


def test_a_model_without_a_configuration_is_refused(tokenizer, tmp_path):
    model = with_attention(transformer_of(tokenizer))
    refused(TypeError, "must be a Transformer or a RecurrentModel", model, tokenizer, tmp_path / "run")


def test_weights_that_are_not_finite_are_refused(tokenizer, tmp_path):
    model = transformer_of(tokenizer)
    model.weights[3].assign(np.full(model.weights[3].shape, np.nan))
    refused(kt.ConfigError, f"{model.weights[3].path} has values that are NaN", model, tokenizer, tmp_path / "run")


def test_another_vocabulary_is_refused(tokenizer, tmp_path):
    config = kt.TransformerConfig(vocab_size=tokenizer.vocab_size + 1, d_ff=16, num_heads=2, **SIZES)
    refused(kt.ConfigError, "has a vocabulary of", Transformer(config), tokenizer, tmp_path / "run")


def test_a_check_line_of_two_lines_a_single_string_and_no_inference_are_refused(tokenizer, tmp_path):
    model = transformer_of(tokenizer)
    refused(kt.ConfigError, "more than one line", model, tokenizer, tmp_path / "run", check_lines=["a\nb"])
    refused(TypeError, "not one string", model, tokenizer, tmp_path / "run", check_lines="a line")
    refused(TypeError, "an .*Inference. Received: {}", model, tokenizer, tmp_path / "run", inference={})


def test_a_run_of_the_training_command_is_not_overwritten(tokenizer, tmp_path):
    folder = RunFolder(tmp_path)
    folder.config.write_text("", encoding="utf-8")
    with pytest.raises(kt.ConfigError, match="save into another folder"):
        kt.save_run(transformer_of(tokenizer), tokenizer, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]


# What is not loaded


def test_a_missing_run_folder_is_named():
    with pytest.raises(kt.ConfigError, match="There is no run folder nowhere"):
        kt.load_run("nowhere")


@pytest.mark.parametrize("name", ["model.json", "tokenizer.model", "model.weights.h5"])
def test_a_missing_file_is_named(random_folder, tmp_path, name):
    shutil.copytree(random_folder, tmp_path / "run")
    (tmp_path / "run" / name).unlink()
    with pytest.raises(kt.ConfigError, match=f"has no {name}"):
        kt.load_run(tmp_path / "run")


@pytest.mark.parametrize("names", [["litert.json", "calibration.json", "tokenizer.model"], ["12/saved_model.pb"]])
def test_an_export_is_told_from_a_run(tmp_path, names):
    (tmp_path / "12").mkdir()
    for name in names:
        (tmp_path / name).write_text("{}")
    for load in (kt.load_run, kt.Translator.load):
        with pytest.raises(kt.ConfigError, match="is an export, not a run folder: `keras-transformer translate-export"):
            load(tmp_path)


def test_a_tokenizer_of_another_size_is_refused(random_folder, tmp_path):
    shutil.copytree(random_folder, tmp_path / "run")
    RUN_MODEL.replace(vocab_size=331).save(tmp_path / "run" / "model.json")
    with pytest.raises(kt.ConfigError, match="331 .*330"):
        kt.load_run(tmp_path / "run")


@pytest.mark.nightly
@pytest.mark.parametrize("change", [{"d_model": 16}, {"decoder_layers": 2}])
def test_weights_of_another_model_are_refused(random_folder, tmp_path, change):
    shutil.copytree(random_folder, tmp_path / "run")
    RUN_MODEL.replace(**change).save(tmp_path / "run" / "model.json")
    with pytest.raises(kt.ConfigError, match="model.weights.h5 .*model.json"):
        kt.load_run(tmp_path / "run")


def test_the_state_of_an_optimizer_in_the_file_is_left_out(tokenizer, tmp_path):
    model = transformer_of(tokenizer)
    model.compile("adam")
    model.optimizer.build(model.trainable_variables)
    kt.save_run(model, tokenizer, tmp_path)
    np.testing.assert_equal(kt.load_run(tmp_path)[0].get_weights(), model.get_weights())


def test_weights_of_a_larger_model_are_refused(tokenizer, tmp_path):
    """Keras loads what it has a place for and says nothing of the rest."""
    config = kt.TransformerConfig(
        vocab_size=tokenizer.vocab_size, d_ff=16, num_heads=2, **SIZES | {"encoder_layers": 2}
    )
    kt.save_run(Transformer(config), tokenizer, tmp_path)
    config.replace(encoder_layers=1).save(tmp_path / "model.json")
    with pytest.raises(kt.ConfigError, match="model.weights.h5 does not hold the weights of the model that model.json"):
        kt.load_run(tmp_path)


def test_truncated_weights_are_refused(random_folder, tmp_path):
    shutil.copytree(random_folder, tmp_path / "run")
    weights = tmp_path / "run" / "model.weights.h5"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(kt.ConfigError, match="model.weights.h5 is damaged"):
        kt.load_run(tmp_path / "run")


def test_a_damaged_header_in_the_weights_is_refused(random_folder, tmp_path):
    """The local heap that holds the names of a group: HDF5 raises RuntimeError without its signature."""
    shutil.copytree(random_folder, tmp_path / "run")
    weights = tmp_path / "run" / "model.weights.h5"
    weights.write_bytes(weights.read_bytes().replace(b"HEAP", b"heap"))
    with pytest.raises(kt.ConfigError, match="model.weights.h5 is damaged"):
        kt.load_run(tmp_path / "run")


@pytest.mark.nightly
def test_a_file_of_weights_that_are_not_finite_is_refused(random_folder, tmp_path):
    transformer = kt.load_run(random_folder)[0]
    weight = transformer.weights[0]
    weight.assign(np.full(weight.shape, np.nan))
    shutil.copytree(random_folder, tmp_path / "run")
    transformer.save_weights(tmp_path / "run" / "model.weights.h5")
    with pytest.raises(kt.ConfigError, match=f"model.weights.h5 is damaged: {weight.path}"):
        kt.load_run(tmp_path / "run")


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_file_of_weights_has_the_type_that_was_asked_for(dtype, tokenizer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where a file of a name that is used in the run's folder is somebody else's
    (tmp_path / "whole.weights.h5").write_text("mine")
    save_parts(RunFolder(tmp_path / "run"), transformer_of(tokenizer), tokenizer, [], kt.Inference(), dtype)
    types = set()
    with h5py.File(tmp_path / "run" / "model.weights.h5") as file:
        file.visititems(lambda _, item: types.add(str(item.dtype)) if isinstance(item, h5py.Dataset) else None)
    assert types == {dtype} and (tmp_path / "whole.weights.h5").read_text() == "mine"
