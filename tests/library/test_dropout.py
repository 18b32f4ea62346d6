"""Dropout: the share that it keeps, masks that depend on the seed alone, and no effect outside training."""

import itertools
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.ground.replicas import number_of_replica, replica_count, sum_over_replicas
from keras_transformer.layers import dropout as dropout_module
from keras_transformer.layers.dropout import Dropout, dropout, random_bits
from tests.support.models import as_numpy, assert_close, normal

PLACES = 2**17
CHANCE = 5.0  # standard deviations: chance exceeds them once in 1.7 million draws


def kept(seed, shape=(PLACES,), rate=0.5):
    """True where the mask of `seed` keeps."""
    return as_numpy(dropout(np.ones(shape, "float32"), rate, seed)) != 0


def correlation(one, other):
    """Pearson's, in units of its standard deviation for independent masks."""
    return np.corrcoef(one, other)[0, 1] * np.sqrt(len(one))


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
def test_a_place_is_kept_with_probability_1_minus_rate(rate):
    deviation = np.sqrt(rate * (1 - rate) / PLACES)
    assert abs(kept((3, 7), rate=rate).mean() - (1 - rate)) < CHANCE * deviation


def test_kept_values_are_divided_by_1_minus_rate_which_preserves_the_mean():
    inputs = normal(PLACES) + 2.0
    outputs = as_numpy(dropout(inputs, 0.2, (1, 1)))
    is_kept = outputs != 0
    assert_close(outputs[is_kept], inputs[is_kept] / 0.8)
    assert abs(outputs.mean() - inputs.mean()) < CHANCE * outputs.std() / np.sqrt(PLACES)


def test_the_gradient_passes_where_the_value_passes():
    inputs = tf.constant(normal(50))
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        total = tf.reduce_sum(dropout(inputs, 0.2, (1, 1)))
    assert_close(tape.gradient(total, inputs), kept((1, 1), (50,), 0.2) / 0.8)


def test_every_bit_is_set_half_the_time():
    bits = as_numpy(random_bits((PLACES,), (5, 9))).astype("uint32")
    shares = [(bits >> place & 1).mean() for place in range(32)]
    assert_close(shares, [0.5] * 32, atol=CHANCE * 0.5 / np.sqrt(PLACES), rtol=0)


def test_the_same_seed_gives_the_same_mask_whatever_the_values():
    ones, others = np.ones((40, 50), "float32"), 1.0 + normal(40, 50) ** 2
    is_kept = as_numpy(dropout(ones, 0.3, (4, 2))) != 0
    np.testing.assert_array_equal(is_kept, as_numpy(dropout(others, 0.3, (4, 2))) != 0)


def test_masks_of_other_layers_and_steps_are_uncorrelated():
    seeds = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1), (1_000_003, 0), (1_000_003, 2**16), (2**40 + 3, 1)]
    masks = [kept(seed) for seed in seeds]
    for one, other in itertools.combinations(masks, 2):
        assert abs(correlation(one, other)) < CHANCE


@pytest.mark.parametrize("distance", [1, 2, 3, 16, 64, 127, 128, 256, 512, 1000, 1024, 4096, 65536])
def test_places_at_any_distance_are_uncorrelated(distance):
    is_kept = kept((1, 5), (2 * PLACES,))
    assert abs(correlation(is_kept[:-distance], is_kept[distance:])) < CHANCE


@pytest.mark.parametrize("step", [0, 1, 1000])
def test_no_mask_is_a_shifted_copy_of_the_mask_of_another_layer(step):
    # the hashes of these two streams differ by 185: were a mask a window on one long sequence, theirs would overlap
    one, other = (as_numpy(random_bits((4096,), (1552 * 1_000_003 + layer, step))) for layer in (16, 28))
    assert np.intersect1d(one, other).size < 4  # chance: one in 256 times, 2^12 * 2^12 / 2^32


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32"])
def test_the_mask_is_the_same_compiled_by_xla_in_a_graph_and_eagerly(dtype):
    inputs = tf.ones((30, 7))
    draw = lambda inputs, seed: dropout(inputs, 0.3, seed)  # noqa: E731
    seed = tf.constant([1_000_003, 12], dtype)
    expected = draw(inputs, seed)
    for jit_compile in (False, True):
        np.testing.assert_array_equal(tf.function(draw, jit_compile=jit_compile)(inputs, seed), expected)


def test_the_layer_draws_another_mask_in_every_training_call():
    layer, inputs = Dropout(0.5, seed=1), np.ones(1000, "float32")
    first, second = (as_numpy(layer(inputs, training=True)) for _ in range(2))
    assert set(first) == set(second) == {0.0, 2.0}
    assert (first != second).any()


def test_layers_with_the_same_seed_draw_the_same_mask_and_with_another_seed_another():
    inputs = np.ones(1000, "float32")
    one, same, other = (as_numpy(Dropout(0.5, seed=seed)(inputs, training=True)) for seed in (1, 1, 2))
    assert (one == same).all() and (one != other).any()


@pytest.mark.parametrize(("rate", "training"), [(0.5, False), (0.5, None), (0.0, True)])
def test_outside_training_and_at_rate_0_the_output_is_the_input(rate, training):
    inputs = normal(8, 4)
    np.testing.assert_array_equal(as_numpy(Dropout(rate)(inputs, training=training)), as_numpy(inputs))


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5, float("nan")])
def test_a_rate_outside_0_to_1_is_refused(rate):
    with pytest.raises(ValueError, match=rf"rate must be in \[0, 1\). Received: rate={rate}"):
        Dropout(rate)


def test_a_layer_comes_back_from_its_config():
    layer = Dropout(0.25, seed=7, name="source_dropout", dtype="mixed_float16")
    restored = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert restored.get_config() == layer.get_config()
    assert (restored.rate, restored.seed, restored.name) == (0.25, 7, "source_dropout")
    inputs = np.ones(100, "float32")
    np.testing.assert_array_equal(as_numpy(restored(inputs, training=True)), as_numpy(layer(inputs, training=True)))


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_a_mixed_policy_keeps_the_same_places_in_its_compute_type(precision):
    inputs = np.ones(1000, "float32")
    whole = as_numpy(Dropout(0.2, seed=3)(inputs, training=True))
    half = Dropout(0.2, seed=3, dtype=f"mixed_{precision}")(inputs, training=True)
    assert keras.backend.standardize_dtype(half.dtype) == precision
    assert_close(half, whole, rtol=0.01)
    assert ((as_numpy(half) == 0) == (whole == 0)).all()


def test_a_replica_adds_its_number_to_the_stream_of_its_seed(monkeypatch):
    monkeypatch.setattr(dropout_module, "number_of_replica", lambda: 3)
    seed = tf.constant([11, 5], "int64")
    monkeypatch.setattr(dropout_module, "replica_count", lambda: 4)
    assert as_numpy(dropout_module.seed_of_replica(seed)).tolist() == [11 + 3 * 0x9E3779B9, 5]
    monkeypatch.setattr(dropout_module, "replica_count", lambda: 1)
    assert dropout_module.seed_of_replica(seed) is seed


@pytest.fixture
def strategy(monkeypatch):
    """A strategy of three replicas, seen from its third one: all have the same values."""
    context = types.SimpleNamespace(
        num_replicas_in_sync=3,
        replica_id_in_sync_group=2,
        all_reduce=lambda kind, value: 3 * value if kind == tf.distribute.ReduceOp.SUM else value,
    )
    monkeypatch.setattr(tf.distribute, "get_replica_context", lambda: context)
    monkeypatch.setattr(tf.distribute, "get_strategy", lambda: context)
    return context


def of_all(value=5.0):
    return replica_count(), number_of_replica(), float(sum_over_replicas(value))


def test_a_replica_knows_its_number_their_count_and_the_sum_of_all(strategy):
    assert of_all() == (3, 2, 15.0)
    strategy.num_replicas_in_sync = 1
    assert sum_over_replicas(5.0) == 5.0


def test_between_replicas_and_without_a_strategy_there_is_nothing_to_sum(strategy, monkeypatch):
    monkeypatch.setattr(tf.distribute, "get_replica_context", lambda: None)  # while Keras builds the model
    assert of_all() == (3, 0, 5.0)
    monkeypatch.undo()
    assert of_all() == (1, 0, 5.0)


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_other_backends_have_one_replica(strategy, backend, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: backend)
    assert of_all() == (1, 0, 5.0)
