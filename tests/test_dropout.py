"""Dropout whose mask is a hash of seed and place."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from examples import as_numpy, assert_close, normal
from keras import ops

from keras_transformer.layers.dropout import Dropout, dropout, random_bits

ONES = np.ones((100, 400), "float32")  # 40,000 draws: the standard error of a share is below 0.0025


def kept(rate, *seed):
    """Where a mask of that seed lets ones through."""
    return as_numpy(dropout(ops.convert_to_tensor(ONES), rate, np.array(seed))) > 0


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_the_share_of_zeros_is_the_rate_and_the_others_are_scaled_so_that_the_mean_stays(rate):
    output = as_numpy(dropout(ops.convert_to_tensor(ONES), rate, np.array([1, 2])))
    assert (output == 0).mean() == pytest.approx(rate, abs=0.01)
    assert_close(output[output > 0], np.full(int((output > 0).sum()), 1 / (1 - rate)))
    assert output.mean() == pytest.approx(1.0, abs=0.06)


def test_the_same_seed_gives_the_same_mask():
    assert (kept(0.5, 7, 8) == kept(0.5, 7, 8)).all()


@pytest.mark.parametrize("other", [(0, 1), (1, 0), (1, 1), (0, 2**31), (1_000_003, 0)])
def test_masks_of_neighbouring_seeds_are_independent(other):
    # two independent masks of rate 1/2 agree in half of their places
    assert (kept(0.5, 0, 0) == kept(0.5, *other)).mean() == pytest.approx(0.5, abs=0.015)


@pytest.mark.parametrize("shift", [1, 2, 16, 400, 512])
def test_places_of_one_mask_are_independent(shift):
    mask = kept(0.5, 3, 4).ravel()
    assert (mask[shift:] == mask[:-shift]).mean() == pytest.approx(0.5, abs=0.015)


def test_the_mask_of_a_higher_rate_drops_what_a_lower_rate_drops():
    assert (kept(0.6, 1, 1) <= kept(0.2, 1, 1)).all()


def test_every_one_of_the_32_bits_is_one_half_of_the_time():
    bits = as_numpy(ops.cast(random_bits((40_000,), np.array([5, 6])), "int64")).astype("int64")
    shares = ((bits[:, None] >> np.arange(32)) & 1).mean(axis=0)
    assert shares == pytest.approx([0.5] * 32, abs=0.015)


def test_the_gradient_passes_where_the_value_does():
    inputs = tf.constant(normal(20, 30))
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        output = dropout(inputs, 0.3, np.array([1, 2]))
    assert_close(tape.gradient(output, inputs), (as_numpy(output) != 0) / 0.7)


def test_compiled_with_xla_the_mask_is_the_same():
    compiled = tf.function(lambda inputs: dropout(inputs, 0.5, tf.constant([9, 10])), jit_compile=True)
    assert (as_numpy(compiled(tf.constant(ONES))) > 0).tolist() == kept(0.5, 9, 10).tolist()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_keeps_its_dtype_and_its_mask(dtype):
    output = dropout(ops.cast(ops.convert_to_tensor(ONES), dtype), 0.5, np.array([1, 2]))
    assert keras.backend.standardize_dtype(output.dtype) == dtype
    assert_close(ops.cast(output, "float32"), 2.0 * kept(0.5, 1, 2))


def test_the_layer_drops_in_training_only_and_draws_anew_each_time():
    layer = Dropout(0.5, seed=1)
    assert_close(layer(ONES), ONES, atol=0)
    assert_close(layer(ONES, training=False), ONES, atol=0)
    first, second = (as_numpy(layer(ONES, training=True)) > 0 for _ in range(2))
    assert first.mean() == pytest.approx(0.5, abs=0.01)
    assert (first == second).mean() == pytest.approx(0.5, abs=0.015)


def test_a_rate_of_0_changes_nothing_in_training_and_has_no_state():
    layer = Dropout(0.0)
    assert_close(layer(ONES, training=True), ONES, atol=0)
    assert layer.weights == []


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5])
def test_a_rate_outside_0_to_1_is_refused(rate):
    with pytest.raises(ValueError, match=f"Received: rate={rate}"):
        Dropout(rate)
