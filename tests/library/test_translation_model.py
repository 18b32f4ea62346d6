"""What Keras promises of a functional model, held by every kind of model: files, freezing, quantizing, copies."""

import functools

import keras
import numpy as np
import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.layers import masking
from keras_transformer.model import Transformer
from keras_transformer.recurrent.config import RecurrentConfig
from keras_transformer.recurrent.model import RecurrentModel
from keras_transformer.runs.kinds import CONFIGS as CONFIG_CLASSES
from keras_transformer.runs.kinds import build_model, config_of, incremental_decoder, kind_of, with_attention
from keras_transformer.runs.saved_run import save_run
from keras_transformer.translation_model import config_in_clone
from tests.support.models import SMALL, as_numpy, assert_close, batch_of, randomise

ONE = SMALL.replace(encoder_layers=1, decoder_layers=1)
RECURRENT = RecurrentConfig(vocab_size=SMALL.vocab_size, d_model=8)
CONFIGS = {
    "transformer": ONE,
    "pre-norm": ONE.replace(norm="pre", positions="learned", attention_bias=True, shared_embeddings=False),
    "recurrent encoder": ONE.replace(encoder_layer="recurrent"),
    "convolutional": ONE.replace(encoder_layer="convolutional"),
    "restricted": ONE.replace(encoder_layer="restricted"),
    "SSRU": ONE.replace(decoder_layer="ssru"),
    "recurrent": RECURRENT,
    "additive": RECURRENT.replace(cell="lstm", decoder_layers=2, attention="additive", shared_embeddings=False),
    "without attention": RECURRENT.replace(attention="none", bidirectional=False),
}
every_kind = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())


@functools.cache
def random_model(config):
    """A model with random weights, of which the tests of a kind share one: they only call and copy it."""
    return randomise(build_model(config))


@pytest.mark.parametrize("config", ["tiny", {"d_model": 8}, None, 8])
@pytest.mark.parametrize("model", [Transformer, RecurrentModel])
def test_a_model_is_made_of_a_configuration_of_its_kind(model, config):
    other = RECURRENT if model is Transformer else ONE
    for given in (config, other):
        with pytest.raises(TypeError, match=f"A {model.__name__} is made of a .*Config. Received: "):
            model(given)


@every_kind
@pytest.mark.parametrize("policy", ["bfloat16", "mixed_bfloat16"])
def test_every_layer_has_the_precision_of_the_model(config, policy):
    model = build_model(config, dtype=policy)
    without = (keras.layers.InputLayer, masking.SegmentMask, masking.CausalSegmentMask, masking.PositionsInSegment)
    layers = [layer for layer in model._flatten_layers() if not isinstance(layer, without)]  # those have no numbers
    assert not [(layer.name, layer.dtype_policy.name) for layer in layers if layer.dtype_policy.name != policy]
    assert {weight.dtype for weight in model.weights} == {keras.dtype_policies.get(policy).variable_dtype}


BATCH = batch_of([[([5, 6, 7, 3], [2, 8, 9])], [([4, 3], [2])]], 5, 4)


def again(model):
    """The model that Keras makes of the same configuration and weights, as it does for a file."""
    copy = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(model))
    copy.set_weights(model.get_weights())
    return copy


def trained(model):
    return [weight.path for weight in model.trainable_weights]


@pytest.mark.slow
@every_kind
def test_json_and_a_file_of_weights_make_the_same_model(config, tmp_path):
    model = random_model(config)
    copy = keras.models.model_from_json(model.to_json())
    model.save_weights(tmp_path / "a.weights.h5")
    copy.load_weights(tmp_path / "a.weights.h5")
    assert type(copy) is type(model) and copy.model_config == config
    assert_close(copy(BATCH), model(BATCH), atol=0, rtol=0)


@every_kind
def test_a_policy_for_each_layer_is_refused(config):
    policies = keras.dtype_policies.DTypePolicyMap(default_policy="float32")
    with pytest.raises(ValueError, match="All layers of a model have one dtype policy"):
        build_model(config, dtype=policies)


# Freezing


@pytest.mark.nightly
@every_kind
def test_a_file_with_a_frozen_layer_trains_all_weights_when_told_to(config, tmp_path):
    model = build_model(config)
    layer = next(layer for layer in model.layers if layer.weights)
    layer.trainable = False
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert trained(loaded) == trained(model)
    loaded.get_layer(layer.name).trainable = True
    assert len(loaded.trainable_weights) == len(loaded.weights)


@pytest.mark.parametrize("config", [ONE, RECURRENT], ids=["transformer", "recurrent"])
@pytest.mark.parametrize("is_trained", [False, True])
def test_a_model_has_the_arguments_that_every_model_of_keras_has(config, is_trained):
    model = kind_of(config).model(config, name="mine", trainable=is_trained)
    assert (model.name, model.trainable) == ("mine", is_trained)
    assert len(model.trainable_weights) == is_trained * len(model.weights)


def test_every_kind_of_model_is_in_the_table():
    assert {type(config) for config in (ONE, RECURRENT)} == set(CONFIG_CLASSES.values())


def test_a_part_that_trains_inside_of_a_frozen_layer_and_a_weight_that_does_not():
    model = build_model(ONE)
    block = model.get_layer("encoder_block_1")
    block.trainable = False
    block.self_attention.trainable = True
    model.weights[-1].trainable = False
    copy = again(model)
    assert trained(copy) == trained(model)
    assert not copy.get_layer("encoder_block_1").trainable
    copy.get_layer("encoder_block_1").trainable = True
    assert len(copy.trainable_weights) == len(copy.weights) - 1


def test_a_layer_that_an_older_file_froze_by_its_weights_trains_when_told_to():
    config = build_model(ONE).get_config()
    del config["trainable"]
    config["frozen"] = [weight.path for weight in build_model(ONE).get_layer("encoder_block_1").weights]
    model = keras.saving.get_registered_object("keras_transformer>Transformer").from_config(config)
    assert set(trained(build_model(ONE))) - set(trained(model)) == set(config["frozen"])
    model.get_layer("encoder_block_1").trainable = True
    assert len(model.trainable_weights) == len(model.weights)


# Quantizing


@pytest.mark.filterwarnings("ignore:Layer")  # Keras warns of each layer that it cannot quantize
@pytest.mark.parametrize("mode", ["int8", "float8"])
@pytest.mark.parametrize("name", ["transformer", "recurrent"])
def test_a_quantized_model_is_not_saved_and_leaves_the_files_before_it(name, mode, tmp_path):
    model, path = build_model(CONFIGS[name]), tmp_path / "model.keras"
    path.write_bytes(b"saved before")
    model.quantize(mode)
    assert np.isfinite(as_numpy(model(BATCH))).all()
    for save in (lambda: model.save(path), model.get_config, lambda: keras.models.clone_model(model)):
        with pytest.raises(ValueError, match=rf"after `quantize`: its part '.*' is {mode}\. Save it before"):
            save()
    assert path.read_bytes() == b"saved before"
    for use in (config_of, incremental_decoder, with_attention, lambda model: save_run(model, None, tmp_path / "run")):
        with pytest.raises(ConfigError, match=f"is {mode}, as after `quantize`"):
            use(model)
    assert not (tmp_path / "run").exists()


# Clones


@pytest.mark.nightly
@every_kind
def test_a_clone_computes_the_same_and_knows_its_configuration(config):
    model = random_model(config)
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    assert_close(clone(BATCH), model(BATCH), atol=0, rtol=0)
    assert config_of(clone) == config and clone.precision == "float32"
    expected = with_attention(model)(BATCH)
    for name, weights in with_attention(clone)(BATCH).items():
        assert_close(weights, expected[name], atol=0, rtol=0)


def test_only_a_model_of_the_same_inputs_and_one_output_is_a_clone():
    model = build_model(ONE)
    inputs = keras.Input((4, 8))
    for other in (
        with_attention(model),
        keras.Model(inputs, keras.layers.Dense(2)(inputs)),
        keras.layers.Dense(2),
        None,
    ):
        assert config_in_clone(other) is None


def other_layers(model, **values):
    """A clone in which the layers that take these arguments have other values of them."""

    def clone(layer):
        config = layer.get_config()
        return layer.from_config(config | {name: value for name, value in values.items() if name in config})

    return keras.models.clone_model(model, clone_function=clone)


def swapped(model):
    """A model of the same layers that reads the target as its source."""
    inputs = model.input
    order = ("target_ids", "target_segments", "source_ids", "source_segments")
    logits = keras.Model(inputs, model.output)(dict(zip(inputs, (inputs[name] for name in order), strict=True)))
    return keras.Model(inputs, logits)


def mean_of_two(model):
    other = keras.models.clone_model(model)
    return keras.Model(model.input, keras.layers.Average()([model.output, other(model.input)]))


def with_head(model):
    states = model.output._keras_history.operation._inbound_nodes[-1].input_tensors[0]
    return keras.Model(model.input, keras.layers.Dense(23)(states))


LOOKS_LIKE_A_CLONE = {
    "a layer behind": lambda model: keras.Model(model.input, keras.layers.Rescaling(-1.0)(model.output)),
    "a head": with_head,
    "an earlier output": lambda model: keras.Model(model.input, model.layers[-2].output),
    "other arguments": lambda model: other_layers(model, rate=0.75),
    "other widths": lambda model: other_layers(model, d_ff=5, units=5),
    "two precisions": lambda model: other_layers(model, rate=0.0, dtype="bfloat16"),
    "two models": mean_of_two,
    "another order": swapped,
}


@pytest.mark.parametrize("make", LOOKS_LIKE_A_CLONE.values(), ids=LOOKS_LIKE_A_CLONE.keys())
@pytest.mark.parametrize("name", ["transformer", "recurrent"])
def test_a_model_of_the_same_layers_that_computes_something_else_is_refused(name, make, tmp_path):
    model = make(random_model(CONFIGS[name]))
    for use in (config_of, incremental_decoder, with_attention, lambda model: save_run(model, None, tmp_path / "run")):
        with pytest.raises(TypeError, match="The model must be a Transformer or a RecurrentModel|but is none: it"):
            use(model)
    assert not (tmp_path / "run").exists()


def test_a_frozen_clone_and_another_model_of_the_same_graph_are_taken():
    model = random_model(ONE)
    clone = keras.models.clone_model(model)
    clone.get_layer("encoder_block_1").trainable = False
    for same in (clone, keras.Model(model.input, model.output)):
        assert config_of(same) == ONE


# Inputs


@pytest.mark.nightly
@every_kind
def test_an_empty_batch_gives_no_logits(config):
    nothing = {name: values[:0] for name, values in BATCH.items()}
    model = random_model(config)
    for logits in (model(nothing), model.predict_on_batch(nothing)):
        assert logits.shape == (0, 4, SMALL.vocab_size)


@pytest.mark.nightly
@every_kind
def test_a_compiled_model_computes_the_same(config):
    model = randomise(build_model(config))
    expected = as_numpy(model(BATCH))
    for jit_compile in (True, False):
        model.compile(jit_compile=jit_compile)
        assert_close(model.predict(BATCH, verbose=0), expected, atol=1e-4)
