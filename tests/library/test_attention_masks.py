"""Masks of attention: of every shape that Keras' own layer takes, and one sentence for any other."""

import itertools
import re

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.blocks import DecoderBlock
from tests.support.models import as_numpy, assert_close, normal, randomise


def masks_of(batch, heads, queries, keys):
    """Masks of every shape that fits, each with the one of all axes that it stands for."""
    full = np.random.default_rng(3).random((batch, heads, queries, keys)) < 0.6
    for shape in itertools.product((1, batch), (1, heads), (1, queries)):
        mask = full[tuple(slice(size) for size in shape)]
        yield mask, np.broadcast_to(mask, full.shape)
    yield full[:, 0], np.broadcast_to(full[:, :1], full.shape)
    yield full[:, 0, 0], np.broadcast_to(full[:, :1, :1], full.shape)


@pytest.mark.parametrize("mask, whole", list(masks_of(2, 4, 3, 5)))
def test_a_mask_may_be_of_each_head_and_the_same_along_any_axis(mask, whole):
    """As Keras' own layer computes with a mask of all axes, but where no key is left: there it attends to all."""
    states, memory, layer = normal(2, 3, 8), normal(2, 5, 8, seed=1), MultiHeadAttention(4, 2)
    layer.build(states.shape, memory.shape)
    theirs = keras.layers.MultiHeadAttention(4, 2, use_bias=False)
    theirs.build(states.shape, memory.shape)
    for ours, weight in zip(randomise(layer).weights, theirs.weights, strict=True):
        weight.assign(ops.reshape(ours, weight.shape))
    expected = theirs(states, memory, attention_mask=whole)
    found, weights = layer(states, memory, mask)
    rows = whole.any(-1).all(axis=1)
    assert rows.any()
    assert_close(as_numpy(found)[rows], as_numpy(expected)[rows])
    assert not as_numpy(weights)[~whole].any()


@pytest.mark.parametrize(
    "shape", [(3, 5), (2, 4), (3, 3, 5), (2, 3, 4), (2, 2, 3, 5), (2, 4, 5, 3), (5,), (1, 1, 1, 1, 5)]
)
def test_a_mask_that_fits_no_axis_is_one_sentence(shape):
    states, memory, layer = normal(2, 3, 8), normal(2, 5, 8), MultiHeadAttention(4, 2)
    with pytest.raises(ValueError, match=re.escape(f"(2, 4, 3, 5) here. Received: a mask of shape {shape}. If it is")):
        layer(states, memory, np.ones(shape, bool))


def test_a_mask_that_could_be_of_queries_and_keys_is_named():
    states, layer = normal(3, 3, 8), MultiHeadAttention(2, 4)
    with pytest.warns(UserWarning, match=re.escape("The mask (3, 3) is taken for (B, K), not for (Q, K)")):
        layer(states, states, np.tri(3, dtype=bool))


def test_a_block_takes_the_same_masks():
    states, memory = normal(2, 4, 8), normal(2, 5, 8)
    block = DecoderBlock(num_heads=2, key_dim=3, d_ff=12)
    expected = randomise(block)(states, memory) and block(states, memory, np.tri(4, dtype=bool)[None])
    for self_mask in (np.tri(4, dtype=bool)[None, None], np.broadcast_to(np.tri(4, dtype=bool), (2, 2, 4, 4))):
        for found, wanted in zip(block(states, memory, self_mask), expected, strict=True):
            assert_close(found, wanted, atol=0)
    with pytest.raises(ValueError, match=re.escape("If it is (Q, K), give mask[None]")):
        block(states, memory, np.tri(4, dtype=bool))
