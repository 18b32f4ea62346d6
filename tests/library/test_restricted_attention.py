"""Restricted self-attention: the blocked computation is masked attention, at the cost of n * r."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.restricted_attention import RestrictedSelfAttention, banded_attention, in_blocks
from keras_transformer.masks import neighbourhood_mask
from tests.support.models import as_numpy, assert_close, normal, randomise

PACKED = np.array([[1] * 7 + [2] * 5 + [0], [1] * 13], "int32")


def pair_of_layers(neighbourhood, **arguments):
    """A restricted layer, and full attention with the same weights."""
    restricted = RestrictedSelfAttention(2, 4, neighbourhood, value_dim=3, **arguments)
    full = MultiHeadAttention(2, 4, value_dim=3, **arguments)
    for layer in (restricted, full):
        layer.build((2, 13, 6))
    full.set_weights(randomise(restricted).get_weights())
    return restricted, full


@pytest.mark.parametrize("neighbourhood", [1, 3, 5, 13, 31])
def test_the_blocked_computation_is_masked_attention(neighbourhood):
    restricted, full = pair_of_layers(neighbourhood, use_bias=True, scale_scores=neighbourhood > 3)
    states = normal(2, 13, 6)
    expected = full(states, states, neighbourhood_mask(PACKED, neighbourhood))
    for found, wanted in zip(restricted(states, PACKED), expected, strict=True):
        assert_close(found, wanted)


def test_its_gradients_are_those_of_masked_attention():
    restricted, full = pair_of_layers(5)
    states, weights = tf.constant(normal(2, 13, 6)), normal(2, 13, 6, seed=1)
    found = []
    for layer, arguments in ((restricted, (PACKED,)), (full, (states, neighbourhood_mask(PACKED, 5)))):
        with tf.GradientTape() as tape:
            tape.watch(states)
            loss = ops.sum(layer(states, *arguments)[0] * weights)
        found.append(tape.gradient(loss, [states, *layer.trainable_weights]))
    for one, other in zip(*found, strict=True):
        assert_close(one, other, atol=1e-4)


def test_with_equal_keys_a_word_is_the_mean_of_the_words_around_it():
    value = np.array([1.0, 2.0, 6.0, 10.0, 14.0]).reshape(1, 5, 1, 1)
    nothing = np.zeros((1, 5, 1, 2))
    output, _ = banded_attention(*map(ops.convert_to_tensor, (nothing, nothing, value)), np.ones((1, 5), "int32"), 3)
    assert_close(output[0, :, 0, 0], [1.5, 3.0, 6.0, 10.0, 12.0])


def test_a_neighbour_across_the_edge_of_a_block_is_seen_and_one_word_further_is_not():
    restricted, _ = pair_of_layers(5)  # blocks 0 to 4, 5 to 9 and 10 to 12
    states, segments = normal(1, 13, 6), np.ones((1, 13), "int32")
    before = as_numpy(restricted(states, segments)[0])
    states[0, 5] += 1.0
    moved = np.abs(as_numpy(restricted(states, segments)[0]) - before)[0].max(axis=-1) > 1e-6
    assert np.flatnonzero(moved).tolist() == [3, 4, 5, 6, 7]


@pytest.mark.parametrize(("length", "blocks"), [(1, 1), (5, 1), (6, 2), (13, 3), (500, 100)])
def test_no_tensor_is_larger_than_positions_times_neighbourhood(length, blocks):
    states = normal(1, length, 2, 3)
    output, weights = banded_attention(*[ops.convert_to_tensor(states)] * 3, np.ones((1, length), "int32"), 5)
    assert output.shape == (1, length, 2, 3)
    assert weights.shape == (1, blocks, 2, 5, 9)


def test_nothing_on_the_way_is_as_large_as_all_pairs_of_positions():
    def attend(states):
        return banded_attention(states, states, states, np.ones((1, 500), "int32"), 5)

    graph = tf.function(attend).get_concrete_function(tf.TensorSpec((1, 500, 2, 3))).graph
    sizes = [tensor.shape.num_elements() for each in graph.get_operations() for tensor in each.outputs]
    assert None not in sizes and 500 * 2 * 9 <= max(sizes) < 500 * 500


@pytest.mark.parametrize("dtype", ["int32", "float16", "bfloat16", "float32"])
def test_positions_in_blocks_have_their_order_and_their_type_and_zeros_behind_them(dtype):
    for length in (1, 4, 5, 8):
        numbers = np.arange(1, 2 * length + 1).reshape(2, length)
        blocks = in_blocks(ops.cast(numbers, dtype), 4)
        assert keras.backend.standardize_dtype(blocks.dtype) == dtype
        filled = np.pad(numbers, ((0, 0), (0, -length % 4)))
        assert as_numpy(blocks).tolist() == filled.reshape(2, -1, 4).tolist()


@pytest.mark.parametrize("neighbourhood", [0, 2, -1])
def test_a_neighbourhood_without_a_middle_is_refused(neighbourhood):
    with pytest.raises(ValueError, match="neighbourhood"):
        RestrictedSelfAttention(2, 4, neighbourhood)
    with pytest.raises(ValueError, match="neighbourhood"):
        neighbourhood_mask(PACKED, neighbourhood)
