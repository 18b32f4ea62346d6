"""What Keras promises of every layer, held by each layer of the library: tests/support/layers.py has the table."""

import dataclasses
import inspect

import keras
import numpy as np
import pytest

import keras_transformer.layers as layers
from keras_transformer.config import TransformerConfig
from keras_transformer.layers import masking
from keras_transformer.layers.blocks import AttentionBlockConfig
from keras_transformer.layers.cells import LSTMCell
from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.layers.positions import BiasPositions
from keras_transformer.layers.recurrent import Recurrent
from tests.support.layers import EXAMPLES, every_layer, functional, outputs
from tests.support.models import GAINS, as_numpy, assert_close, randomise

WITH_WEIGHTS = {
    name: (layer_class, arguments, inputs)
    for name, (layer_class, arguments, inputs) in EXAMPLES.items()
    if functional(layer_class(**arguments), inputs).weights
}
every_layer_with_weights = pytest.mark.parametrize(
    ("layer_class", "arguments", "inputs"), WITH_WEIGHTS.values(), ids=WITH_WEIGHTS.keys()
)


def saved_and_loaded(model, folder):
    model.save(folder / "model.keras")
    return keras.saving.load_model(folder / "model.keras")


def assert_same(found, expected, **tolerance):
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, **tolerance)


# Files and copies


@every_layer
def test_json_a_clone_and_a_file_of_weights_make_the_same_model(layer_class, arguments, inputs, tmp_path):
    model = randomise(functional(layer_class(**arguments), inputs))
    from_json, clone = keras.models.model_from_json(model.to_json()), keras.models.clone_model(model)
    model.save_weights(tmp_path / "a.weights.h5")
    if model.weights:
        from_json.load_weights(tmp_path / "a.weights.h5")
    clone.set_weights(model.get_weights())
    for copy in (from_json, clone):
        assert_same(outputs(copy, [inputs]), outputs(model, [inputs]), atol=0, rtol=0)


@every_layer
def test_numbers_of_numpy_are_numbers(layer_class, arguments, inputs, tmp_path):
    of_numpy = {
        name: np.asarray(value)[()] if isinstance(value, int | float) and not isinstance(value, bool) else value
        for name, value in arguments.items()
    }
    model = functional(layer_class(**of_numpy, name="layer"), inputs)
    same = functional(layer_class(**arguments, name="layer"), inputs)
    assert model.layers[-1].get_config() == same.layers[-1].get_config()
    saved_and_loaded(model, tmp_path)


@every_layer_with_weights
def test_a_layer_that_is_frozen_and_saved_is_frozen_and_trains_again_when_told_to(
    layer_class, arguments, inputs, tmp_path
):
    model = functional(layer_class(**arguments), inputs)
    model.layers[-1].trainable = False
    loaded = saved_and_loaded(model, tmp_path)
    assert not loaded.layers[-1].trainable
    assert not loaded.trainable_weights
    loaded.layers[-1].trainable = True
    assert len(loaded.weights) == len(model.weights)
    assert len(loaded.trainable_weights) == len(functional(layer_class(**arguments), inputs).trainable_weights) > 0


@every_layer_with_weights
def test_a_bias_begins_at_0_a_scale_at_1_and_a_matrix_with_draws(layer_class, arguments, inputs):
    for weight in functional(layer_class(**arguments), inputs).weights:
        values = set(as_numpy(weight).flatten().tolist())
        if weight.name.endswith(("bias", "beta", *GAINS)):
            is_lstm = layer_class is LSTMCell or arguments.get("cell") == "lstm"
            forgets = is_lstm and weight.name == "bias" and "attentional_state" not in weight.path
            first = {float(weight.name in GAINS)}
            assert values == (first | {1.0} if forgets else first), weight.path
        elif weight.dtype == "float32":
            assert len(values) > 1, weight.path


def test_what_is_left_out_of_a_block_is_as_in_the_base_model_but_for_its_dropout():
    fields = dataclasses.fields(AttentionBlockConfig)
    defaults = {field.name: field.default for field in fields if field.default is not dataclasses.MISSING}
    assert defaults.pop("dropout") == 0.0  # a script that wants it says so
    assert defaults == {name: getattr(TransformerConfig(), name) for name in defaults}
    assert inspect.signature(layers.FeedForward).parameters["activation"].default == defaults["activation"]


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:Layer")  # Keras warns of each layer that it cannot quantize
@pytest.mark.parametrize("mode", ["int8", "int4", "float8"])
@every_layer_with_weights
def test_a_quantized_layer_comes_back_from_its_file_or_is_refused_in_a_sentence(
    layer_class, arguments, inputs, mode, tmp_path
):
    model = randomise(functional(layer_class(**arguments), inputs))
    model.quantize(mode)
    if any(part.quantization_mode for part in model._flatten_layers()):
        for use in (lambda: saved_and_loaded(model, tmp_path), model.to_json, lambda: keras.models.clone_model(model)):
            with pytest.raises(ValueError, match=rf"after `quantize`: its part '.*' is {mode}\. Save it before"):
                use()
    else:
        loaded = saved_and_loaded(model, tmp_path)
        assert_same(outputs(loaded, [inputs]), outputs(model, [inputs]), atol=0, rtol=0)


@pytest.mark.nightly
@pytest.mark.parametrize("policy", ["float64", "mixed_bfloat16"])
@every_layer
def test_a_dtype_policy_is_that_of_every_part_and_comes_back_from_a_file(
    layer_class, arguments, inputs, policy, tmp_path
):
    model = randomise(functional(layer_class(**arguments, dtype=policy), inputs))
    loaded = saved_and_loaded(model, tmp_path)
    for one in (model, loaded):
        layer = one.layers[-1]
        parts = set(layer._flatten_layers())
        if isinstance(layer, layers.SublayerBlock):
            parts -= set(layer.sublayer._flatten_layers())  # whoever made it has chosen its policy
        assert {part.dtype_policy.name for part in parts} == {policy}
    assert_same(map(as_floats, outputs(loaded, [inputs])), map(as_floats, outputs(model, [inputs])), atol=0, rtol=0)


def as_floats(values):
    return as_numpy(keras.ops.cast(values, "float32"))


# Shapes and inputs


@every_layer
def test_compute_output_shape_is_the_shape_of_what_comes_out(layer_class, arguments, inputs):
    layer = layer_class(**arguments)
    shapes = [tuple(output.shape) for output in outputs(layer, inputs)]
    of_inputs = keras.tree.map_structure(lambda array: array.shape, list(inputs))
    if "cell" in layer.name:
        of_inputs = of_inputs[:1]  # the state decides nothing
    computed = layer.compute_output_shape(*of_inputs)
    assert shapes == ([tuple(shape) for shape in computed] if isinstance(computed[0], tuple) else [tuple(computed)])


@pytest.mark.nightly
@every_layer
def test_an_empty_batch_gives_an_empty_batch(layer_class, arguments, inputs):
    layer = layer_class(**arguments)
    rows = 1 if isinstance(layer, BiasPositions) else 0  # all rows share one bias
    shapes = [(rows, *output.shape[1:]) for output in outputs(layer, inputs)]
    nothing = keras.tree.map_structure(lambda array: array[:0], list(inputs))
    assert [tuple(output.shape) for output in outputs(layer, nothing)] == shapes
    model = functional(layer_class(**arguments), inputs)
    assert [output.shape for output in keras.tree.flatten(model.predict_on_batch(nothing))] == shapes


@every_layer
def test_ids_and_segments_may_be_floats(layer_class, arguments, inputs):
    layer = layer_class(**arguments)
    expected = outputs(layer, inputs)
    as_floats = keras.tree.map_structure(
        lambda array: array if array.dtype == "bool" else array.astype("float32"), list(inputs)
    )
    assert_same(outputs(layer, as_floats), expected, atol=0, rtol=0)


def test_a_token_embedding_may_come_first_in_a_sequential_model_and_keeps_large_ids_apart_in_bfloat16():
    embedding = layers.TokenEmbedding(300, 16, dtype="mixed_bfloat16")
    model = keras.Sequential([embedding, keras.layers.Dense(2)])
    assert model(np.array([[1, 2]])).shape == (1, 2, 2)
    assert_close(as_floats(embedding(np.array([[257.0]]))), as_floats(embedding(np.array([[257]]))), atol=0)
    assert np.abs(as_floats(embedding(np.array([[257.0]]))) - as_floats(embedding(np.array([[256]])))).max() > 0


@pytest.mark.nightly
@every_layer
def test_a_compiled_model_computes_the_same(layer_class, arguments, inputs):
    model = randomise(functional(layer_class(**arguments), inputs))
    expected = [as_numpy(output) for output in outputs(model, [inputs])]
    for jit_compile in (True, False):
        model.compile(jit_compile=jit_compile)
        assert_same(keras.tree.flatten(model.predict(list(inputs), verbose=0)), expected)


# Masks that Keras carries with states

# What a script puts between Embedding(mask_zero=True) and a pooling layer: from states and segments to states.
# The segments tell nothing of padding, so that the mask alone does.
BETWEEN = {
    "attention": lambda states, segments: layers.MultiHeadAttention(2, 3)(states, states)[0],
    "attention to another memory": lambda states, segments: layers.MultiHeadAttention(2, 3)(
        layers.FeedForward(12)(states), states
    )[0],
    "causal attention": lambda states, segments: layers.MultiHeadAttention(2, 3)(
        states, states, mask=masking.CausalSegmentMask()(segments)
    )[0],
    "sinusoids": lambda states, segments: layers.SinusoidalPositions()(states, masking.PositionsInSegment()(segments)),
    "learned positions": lambda states, segments: layers.LearnedPositions(9)(
        states, masking.PositionsInSegment()(segments)
    ),
    "feed-forward": lambda states, segments: layers.FeedForward(12)(states),
    "dropout": lambda states, segments: layers.Dropout(0.3)(states),
    "post-norm block": lambda states, segments: layers.EncoderBlock(2, 3, 12)(states)[0],
    "pre-norm block": lambda states, segments: layers.EncoderBlock(2, 3, 12, norm="pre")(states)[0],
    "causal block": lambda states, segments: layers.EncoderBlock(2, 3, 12)(
        states, mask=masking.CausalSegmentMask()(segments)
    )[0],
    "decoder block": lambda states, segments: layers.DecoderBlock(2, 3, 12)(states, states)[0],
    "pre-norm decoder block": lambda states, segments: layers.DecoderBlock(2, 3, 12, norm="pre")(states, states)[0],
    "unmasked decoder block": lambda states, segments: layers.DecoderBlock(2, 3, 12)(
        states, states, masking.SegmentMask()(segments, segments), masking.SegmentMask()(segments, segments)
    )[0],
    "convolution": lambda states, segments: layers.SegmentConvolution(3)(states, segments),
    "restricted attention": lambda states, segments: layers.RestrictedSelfAttention(2, 3, 3)(states, segments)[0],
    "block of a convolution": lambda states, segments: layers.SublayerBlock(
        layers.SegmentConvolution(3), d_ff=12, norm="pre"
    )(states, segments),
    "block of restricted attention": lambda states, segments: layers.SublayerBlock(
        layers.RestrictedSelfAttention(2, 3, 3), d_ff=12
    )(states, segments)[0],
    "SSRU": lambda states, segments: layers.SSRU()(states, segments),
    "SSRU without segments": lambda states, segments: layers.SSRU()(states),
    "SSRU decoder block": lambda states, segments: layers.SSRUDecoderBlock(2, 3, 12)(states, states, segments)[0],
    "pre-norm SSRU decoder block": lambda states, segments: layers.SSRUDecoderBlock(2, 3, 12, norm="pre")(
        states, states
    )[0],
    "recurrent": lambda states, segments: Recurrent(4, direction="both")(states, segments)[0],
    "block of a recurrent layer": lambda states, segments: layers.SublayerBlock(Recurrent(8), d_ff=12)(
        states, segments
    ),
    "logits": lambda states, segments: layers.TokenEmbedding(5, 8)(states, reverse=True),
}


@pytest.mark.parametrize("between", BETWEEN.values(), ids=BETWEEN.keys())
def test_padding_behind_a_keras_embedding_changes_no_mean(between):
    ids = keras.Input((None,), dtype="int32")
    states = keras.layers.Embedding(10, 8, mask_zero=True)(ids)
    states = between(states, keras.ops.ones_like(ids))
    model = randomise(keras.Model(ids, keras.layers.GlobalAveragePooling1D()(states)))
    sentence = np.array([[3, 4, 5]])
    assert_close(model(np.pad(sentence, ((0, 0), (0, 3)))), model(sentence))


def test_a_masked_key_gets_no_weight_whatever_other_masks_allow():
    ids, states = np.array([[0, 4, 5]]), keras.layers.Embedding(10, 8, mask_zero=True)(np.array([[0, 4, 5]]))
    attention, block = layers.MultiHeadAttention(2, 3), layers.DecoderBlock(2, 3, 12)
    for mask in (None, np.tril(np.ones((1, 3, 3), bool)), ids < 5):
        _, weights = attention(states, states, mask)
        assert not as_numpy(weights)[..., 0].any()
    for weights in block(states, states)[1:]:
        assert not as_numpy(weights)[..., 0].any()
    assert as_numpy(attention(states, states, memory_mask=ids < 5)[1])[..., 0].all()  # a given one comes first


def test_every_layer_that_is_made_of_layers_is_a_composite_layer():
    """CompositeLayer freezes what a file says is frozen, and refuses to be saved after `quantize`."""
    for layer_class, arguments, inputs in EXAMPLES.values():
        layer = layer_class(**arguments)
        outputs(layer, inputs)
        assert len(layer._flatten_layers()) == 1 or isinstance(layer, CompositeLayer)
