"""What is true of every layer: it can be configured, saved, and computed in half precision."""

import inspect

import keras
import numpy as np
import pytest

import keras_transformer.layers as layers
from keras_transformer.layers import masking
from keras_transformer.layers.normalization import NORMS
from tests.support.layers import EXAMPLES, SELF_MASK, STATES, every_layer, functional, outputs
from tests.support.models import as_numpy, assert_close, randomise

WRAPPERS = set(NORMS.values())  # have no call: they are saved as a part of their block


def registered_layers():
    registered = [entry for entry in keras.saving.get_custom_objects().values() if inspect.isclass(entry)]
    ours = {entry for entry in registered if entry.__module__.startswith("keras_transformer.")}
    return {entry for entry in ours if issubclass(entry, keras.layers.Layer) and not issubclass(entry, keras.Model)}


def test_every_registered_layer_has_an_example():
    assert registered_layers() - WRAPPERS == {layer_class for layer_class, _, _ in EXAMPLES.values()}


def constructor_arguments(layer_class):
    """The arguments of __init__ along the classes of our own."""
    named = set()
    for ancestor in layer_class.__mro__[: layer_class.__mro__.index(keras.layers.Layer)]:
        if "__init__" in vars(ancestor):
            named |= set(inspect.signature(ancestor.__init__).parameters) - {"self", "args", "kwargs"}
    return named


@pytest.mark.parametrize("layer_class", sorted(registered_layers(), key=lambda c: c.__name__))
def test_get_config_holds_every_argument_of_the_constructor(layer_class):
    example = {example_class: arguments for example_class, arguments, _ in EXAMPLES.values()}
    assert constructor_arguments(layer_class) <= set(layer_class(**example.get(layer_class, {})).get_config())


@every_layer
def test_from_config_makes_the_same_layer(layer_class, arguments, inputs):
    layer = layer_class(**arguments, name="a_name", dtype=keras.DTypePolicy("mixed_bfloat16"))
    copy = layer_class.from_config(layer.get_config())
    assert copy.get_config() == layer.get_config()
    assert arguments.items() <= copy.get_config().items()
    assert copy.name == "a_name"
    assert copy.dtype_policy.name == "mixed_bfloat16"


@every_layer
def test_a_saved_layer_computes_the_same(layer_class, arguments, inputs, tmp_path):
    model = randomise(functional(layer_class(**arguments), inputs))
    model.save(tmp_path / "layer.keras")
    loaded = keras.saving.load_model(tmp_path / "layer.keras")
    for found, expected in zip(outputs(loaded, [inputs]), outputs(model, [inputs]), strict=True):
        assert_close(found, expected, atol=0, rtol=0)


@every_layer
def test_symbolic_shapes_are_the_shapes_of_what_comes_out(layer_class, arguments, inputs):
    model = functional(layer_class(**arguments), inputs)
    for symbolic, found in zip(keras.tree.flatten(model.output), outputs(model, [inputs]), strict=True):
        assert len(symbolic.shape) == len(found.shape)
        assert all(known in (None, size) for known, size in zip(symbolic.shape, found.shape, strict=True))
        assert symbolic.dtype == keras.backend.standardize_dtype(found.dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@every_layer
def test_mixed_precision_computes_in_half_and_keeps_its_variables_in_float32(layer_class, arguments, inputs, dtype):
    exact = layer_class(**arguments)
    expected = [as_numpy(output) for output in outputs(exact, inputs)]
    layer = layer_class(**arguments, dtype=f"mixed_{dtype}")
    layer(*inputs)
    layer.set_weights(exact.get_weights())
    found = outputs(layer, inputs)
    assert {weight.dtype for weight in layer.trainable_weights} <= {"float32"}
    for output, exact_output in zip(found, expected, strict=True):
        kind = keras.backend.standardize_dtype(output.dtype)
        assert kind == dtype or kind in ("bool", "int32")
        assert_close(keras.ops.cast(output, "float32"), exact_output, atol=0.1, rtol=0.05)


# Outside translation


def classifier(blocks=2, num_classes=2):
    """A sentence classifier as a script writes it: stock Keras layers around a stack of encoder blocks."""
    ids = keras.Input((None,), dtype="int32")
    states = keras.layers.Embedding(20, 16, mask_zero=True)(ids)
    segments = keras.ops.cast(ids != 0, "int32")
    states = layers.SinusoidalPositions()(states, masking.PositionsInSegment()(segments))
    for _ in range(blocks):
        states, _ = layers.EncoderBlock(num_heads=2, key_dim=8, d_ff=32, dropout=0.1)(states)
    mean = keras.layers.GlobalAveragePooling1D()(states)
    return keras.Model(ids, keras.layers.Dense(num_classes, activation="softmax")(mean))


def sentences_with_a_seven(count):
    """Sentences of 4 to 8 of the ids 1 to 19, padded to 8 with 0, and whether 7 is among them: it is in every other."""
    generator = np.random.default_rng(0)
    lengths = generator.integers(4, 9, count)
    ids = generator.integers(8, 20, (count, 8)) * (np.arange(8) < lengths[:, None])
    ids[::2, 1] = 7
    return ids.astype("int32"), (ids == 7).any(axis=1).astype("int32")


@pytest.mark.slow
def test_a_classifier_of_encoder_blocks_learns_and_comes_back_from_its_file(tmp_path):
    keras.utils.set_random_seed(1)
    ids, labels = sentences_with_a_seven(512)
    model = classifier(blocks=1)
    model.compile(keras.optimizers.Adam(3e-3), "sparse_categorical_crossentropy", jit_compile=False)
    model.fit(ids, labels, batch_size=32, epochs=4, verbose=0)
    assert (as_numpy(model(ids)).argmax(-1) == labels).mean() > 0.95
    model.save(tmp_path / "classifier.keras")
    loaded = keras.saving.load_model(tmp_path / "classifier.keras")
    assert_close(loaded(ids), model(ids), atol=0, rtol=0)


def test_the_mask_of_a_keras_embedding_keeps_padding_out_of_every_block_and_of_what_follows():
    model = randomise(classifier())
    ids, _ = sentences_with_a_seven(6)
    assert_close(model(np.pad(ids, ((0, 0), (0, 5)))), model(ids))


def test_a_mask_of_who_attends_to_whom_is_not_taken_for_a_mask_of_positions():
    inputs = keras.Input((4, 8))
    causal = keras.Input((4, 4), dtype="bool")
    block, attention = layers.EncoderBlock(num_heads=2, key_dim=3, d_ff=12), layers.MultiHeadAttention(2, 3)
    for states, _ in (block(inputs, mask=causal), attention(inputs, inputs, mask=causal)):
        mean = keras.layers.GlobalAveragePooling1D()(states)
        found, expected = keras.Model([inputs, causal], [mean, states])([STATES, SELF_MASK])
        assert_close(found, as_numpy(expected).mean(axis=1))


@every_layer
def test_a_layer_that_is_only_built_has_all_the_weights_that_it_is_called_with(layer_class, arguments, inputs):
    called, built = (layer_class(**arguments, name="layer") for _ in range(2))
    called(*inputs)
    if "build" in vars(layer_class) or called.weights:
        shapes = [keras.tree.map_structure(np.shape, part) for part in inputs]
        built.build(*shapes[: len(inspect.signature(built.build).parameters)])
    assert [(w.path, w.shape) for w in built.weights] == [(w.path, w.shape) for w in called.weights]
