"""`model.decoder_layer = "ssru"`: the unit is the recurrence of Kim et al. 2019, in every way that it is computed."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import SSRU, SSRUDecoderBlock
from keras_transformer.layers.ssru import linear_recurrence, recur, running_average
from tests.support.models import as_numpy, assert_close, layer_norm, normal, randomise

SEGMENTS = np.array([[1, 1, 1, 2, 2, 3, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 2, 2, 2, 0]], "int32")


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


def averages_one_by_one(values, forget, segments):
    """The recurrence as printed, in float64, one number after the other; 0 at padding."""
    averages = np.zeros(values.shape)
    for row in range(len(segments)):
        average, segment = np.zeros(values.shape[2]), 0
        for t in range(segments.shape[1]):
            if segments[row, t] == 0:
                continue
            if segments[row, t] != segment:
                average, segment = np.zeros(values.shape[2]), segments[row, t]
            average = forget[row, t] * average + (1 - forget[row, t]) * values[row, t]
            averages[row, t] = average
    return averages


def test_an_average_that_forgets_half_is_one_half_a_quarter_an_eighth():
    values = ops.convert_to_tensor([[[8.0], [0.0], [0.0], [16.0]]])
    averages = running_average(values, 0.5 * ops.ones_like(values), np.ones((1, 4), "int32"))
    assert_close(averages, [[[4.0], [2.0], [1.0], [8.5]]])


@pytest.mark.parametrize("forget", [0.0, 1.0])
def test_what_forgets_everything_is_the_value_and_what_forgets_nothing_stays_zero(forget):
    values = normal(3, 8, 4)
    averages = running_average(values, np.full(values.shape, forget, "float32"), SEGMENTS)
    assert_close(as_numpy(averages)[SEGMENTS != 0], ((1 - forget) * values)[SEGMENTS != 0])


def test_the_average_is_the_printed_recurrence_and_begins_anew_at_every_segment():
    values, forget = normal(3, 8, 4), sigmoid(normal(3, 8, 4, seed=1))
    found = as_numpy(running_average(values, forget, SEGMENTS))
    is_token = SEGMENTS != 0
    assert_close(found[is_token], averages_one_by_one(values, forget, SEGMENTS)[is_token], atol=1e-6)


def test_the_gradient_is_that_of_the_sum_over_all_paths():
    """c_t = sum_s added_s * kept_{s+1} ... kept_t, in float64: its derivatives by finite differences."""
    kept, added, weights = (np.random.default_rng(seed).uniform(0.1, 0.9, (1, 5, 2)) for seed in range(3))

    def loss(kept, added):
        total = 0.0
        for t in range(5):
            average = sum(added[:, s] * np.prod(kept[:, s + 1 : t + 1], axis=1) for s in range(t + 1))
            total += (weights[:, t] * average).sum()
        return total

    for_kept, for_added = gradients(lambda *tensors: linear_recurrence(*tensors), kept, added, weights)
    for place in np.ndindex(kept.shape):
        step = np.zeros(kept.shape)
        step[place] = 1e-6
        slopes = [
            (loss(kept + step, added) - loss(kept - step, added)) / 2e-6,
            (loss(kept, added + step) - loss(kept, added - step)) / 2e-6,
        ]
        assert_close([for_kept[place], for_added[place]], slopes, atol=1e-7)


def gradients(recurrence, kept, added, weights):
    """The gradients of sum(weights * recurrence) by kept and added, by the backend's own differentiation."""
    if keras.backend.backend() == "jax":
        import jax

        return jax.grad(lambda *tensors: (recurrence(*tensors) * weights).sum(), (0, 1))(kept, added)
    if keras.backend.backend() == "torch":
        tensors = [ops.convert_to_tensor(values).requires_grad_() for values in (kept, added)]
        (recurrence(*tensors) * ops.convert_to_tensor(weights)).sum().backward()
        return [as_numpy(tensor.grad) for tensor in tensors]
    import tensorflow as tf

    tensors = [tf.convert_to_tensor(values) for values in (kept, added)]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        total = tf.reduce_sum(recurrence(*tensors) * weights)
    return [as_numpy(gradient) for gradient in tape.gradient(total, tensors)]


def test_the_written_gradient_is_that_of_the_loop():
    kept, added, weights = sigmoid(normal(2, 9, 3)), normal(2, 9, 3, seed=1), normal(2, 9, 3, seed=2)
    found, expected = (gradients(function, kept, added, weights) for function in (linear_recurrence, recur))
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other)


def test_a_long_past_neither_overflows_nor_vanishes():
    values, forget = np.ones((1, 3000, 2), "float32"), np.array([1e-30, 1 - 1e-6], "float32")
    averages = running_average(values, np.broadcast_to(forget, values.shape), np.ones((1, 3000), "int32"))
    assert_close(averages[0, -1], [1.0, 1 - (1 - 1e-6) ** 3000], rtol=0.05)  # float32 has 1 - 1e-6 to 5 per cent


def expected_ssru(layer, states, segments):
    """relu of the averages, from the layer's weights, in float64."""
    forget, value = (as_numpy(states) @ as_numpy(part.kernel) for part in (layer.forget, layer.value))
    forget = sigmoid(forget + as_numpy(layer.forget.bias))
    return np.maximum(averages_one_by_one(value, forget, segments), 0)


def ssru():
    layer = SSRU()
    layer.build((None, None, 4))
    return randomise(layer, scale=1.0)


def test_the_layer_is_the_printed_unit():
    layer, states = ssru(), normal(3, 8, 4)
    is_token = SEGMENTS != 0
    assert_close(as_numpy(layer(states, SEGMENTS))[is_token], expected_ssru(layer, states, SEGMENTS)[is_token])


def test_training_changes_how_gradients_are_computed_and_no_output():
    layer, states = ssru(), normal(3, 8, 4)
    assert_close(layer(states, SEGMENTS, training=True), layer(states, SEGMENTS), atol=1e-6)


def test_without_segments_a_row_is_one():
    layer, states = ssru(), normal(3, 8, 4)
    assert_close(layer(states), layer(states, np.ones((3, 8), "int32")), atol=0)


def test_no_position_reads_a_later_one():
    layer, states = ssru(), normal(1, 8, 4)
    changed = states.copy()
    changed[0, 5] += 1
    before, after = as_numpy(layer(states)), as_numpy(layer(changed))
    assert_close(before[:, :5], after[:, :5], atol=0)
    assert np.abs(before[:, 5:] - after[:, 5:]).max() > 0.01


def test_a_mask_of_padding_ends_the_past():
    layer, states = ssru(), normal(3, 8, 4)
    ones = np.ones((3, 8), "int32")
    found = as_numpy(layer(states, ones, SEGMENTS != 0))
    assert_close(found[SEGMENTS != 0], as_numpy(layer(states, (SEGMENTS != 0) * ones))[SEGMENTS != 0], atol=0)


def test_in_bfloat16_the_average_is_float32():
    layer = SSRU(dtype="mixed_bfloat16")
    layer.build((None, None, 4))
    for weight, value in zip(layer.weights, ssru().weights, strict=True):
        weight.assign(value)
    states = normal(1, 400, 4)
    found = as_numpy(ops.cast(layer(states), "float32"))
    assert np.abs(found - as_numpy(ssru()(states))).max() < 0.05  # in bfloat16 alone, 400 roundings would add up


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_block_is_the_unit_then_the_memory_then_the_network(norm):
    states, memory, segments = normal(3, 8, 4), normal(3, 5, 4, seed=1), np.ones((3, 8), "int32")
    block = SSRUDecoderBlock(num_heads=2, key_dim=3, d_ff=6, norm=norm, norm_epsilon=0.1)
    block.build(states.shape, memory.shape)
    randomise(block)
    sublayers = (
        (block.ssru_residual, lambda query: block.ssru(query, segments)),
        (block.memory_attention_residual, lambda query: block.memory_attention(query, memory)[0]),
        (block.feed_forward_residual, block.feed_forward),
    )
    expected = states
    for residual, sublayer in sublayers:

        def norm_of(states, residual=residual):
            return layer_norm(states, 0.1, residual.norm.gamma, residual.norm.beta)

        if norm == "post":
            expected = norm_of(expected + as_numpy(sublayer(expected.astype("float32"))))
        else:
            expected = expected + as_numpy(sublayer(norm_of(expected).astype("float32")))
    found, weights = block(states, memory, segments)
    assert_close(found, expected, atol=1e-4)
    assert_close(as_numpy(weights).sum(axis=-1), np.ones((3, 2, 8)))
