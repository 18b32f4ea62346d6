"""Inspected steps: the same update to the last bit; true gradients, histograms and ratios; written when due."""

import functools
import json
import math
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorboard.plugins.histogram.summary_v2 import histogram_pb
from tensorboard.util.tensor_util import make_ndarray

from tests.support.events import read_added
from tests.support.inspected import norm, three_steps
from tests.support.training import fit_in, reusable, train, weights_of
from train.step.layer_charts import BINS, histogram, histograms, layer_of, update_ratios
from train.step.training_model import Inspected

WAYS = [{"dropout": 0.1}, {"dropout": 0.1, "xla": True}, {"micro_batches": 2, "precision": "mixed_float16"}]


@functools.cache
def both(way):
    """`three_steps` without inspection and with it; `way`: an index of WAYS."""
    return [three_steps(reusable(**WAYS[way]).from_the_start(), inspects) for inspects in (False, True)]


@pytest.mark.nightly
@pytest.mark.parametrize("way", range(len(WAYS)))
def test_an_inspected_step_changes_no_bit_of_any_step(way):
    (logs, values, nothing), (inspected_logs, inspected_values, something) = both(way)
    assert nothing is None and something is not None
    assert inspected_logs == logs
    for one, other in zip(inspected_values, values, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.nightly
@pytest.mark.parametrize("way", range(len(WAYS)))
def test_its_gradients_are_those_of_the_mean_loss_of_the_whole_batch_without_a_loss_scale(way):
    logs, _, inspected = both(way)[1]
    assert norm(inspected.gradients) == pytest.approx(logs[1]["gradient_norm"], rel=1e-5)


@pytest.mark.nightly
@pytest.mark.parametrize("way", range(len(WAYS)))
def test_it_keeps_the_weights_before_the_update(way):
    model = reusable(**WAYS[way]).from_the_start()
    before, model.inspects = weights_of(model), True
    train(model, 0, 1)
    for kept, weight in zip(model.inspected.before, before, strict=True):
        np.testing.assert_array_equal(kept.numpy(), weight)
    assert any((one != other).any() for one, other in zip(before, weights_of(model), strict=True))


# layers


@pytest.mark.parametrize(
    ("path", "layer"),
    [
        ("embedding/matrix", "embedding"),
        ("encoder_norm/gamma", "encoder_norm"),
        ("encoder_block_1/feed_forward/inner/kernel", "encoder_block_1/feed_forward"),
        ("decoder_block_12/memory_attention/query/kernel", "decoder_block_12/memory_attention"),
        ("decoder_block_12/memory_attention_residual/norm/gamma", "decoder_block_12/norms"),
    ],
)
def test_a_weight_belongs_to_a_layer_or_to_a_sublayer_of_a_block(path, layer):
    assert layer_of(path) == layer


# closed forms


def small_model(**values):
    """A model with one weight per name, of these values."""
    weights = []
    for path, value in values.items():
        with keras.name_scope(path):
            weights.append(keras.Variable(np.array(value, "float32"), name="kernel"))
    return types.SimpleNamespace(trainable_variables=weights)


def test_the_ratio_is_the_norm_of_the_update_over_the_norm_of_the_weights_before_it():
    model = small_model(one=[3.0, 4.5], other=[[0.0]], new=[1.0])
    inspected = Inspected(gradients=[], before=[tf.constant([3.0, 4.0]), tf.constant([[2.0]]), tf.constant([0.0])])
    assert update_ratios(model, inspected) == {
        "train/update_ratio/one": pytest.approx(0.1),
        "train/update_ratio/other": 1.0,
        "train/update_ratio/new": math.inf,
    }


def test_a_histogram_counts_every_number_of_its_tensors():
    found = make_ndarray(histogram("a", [tf.constant([[0.0, 1.0]]), tf.constant([1.1, 3.0])]).tensor)
    assert found.shape == (BINS, 3) and found[0, 0] == 0.0 and found[-1, 1] == 3.0
    assert {row: count for row, count in enumerate(found[:, 2]) if count} == {0: 1, 10: 1, 11: 1, 29: 1}


@pytest.mark.parametrize("numbers", [np.random.default_rng(0).normal(size=999), [2.5, 2.5, 2.5], []])
def test_a_histogram_is_that_of_tensorboard(numbers):
    numbers = np.array(numbers, "float32")
    (expected,) = histogram_pb("weights/embedding", numbers).value
    found = histogram("weights/embedding", [tf.constant(numbers)])
    assert (found.tag, found.metadata) == (expected.tag, expected.metadata)
    np.testing.assert_allclose(make_ndarray(found.tensor), make_ndarray(expected.tensor), atol=1e-6)


def test_a_histogram_leaves_out_what_is_not_finite():
    found = make_ndarray(histogram("a", [tf.constant([1.0, math.nan, 2.0, math.inf, -math.inf])]).tensor)
    assert (found[0, 0], found[-1, 1], found[:, 2].sum()) == (1.0, 2.0, 2.0)


def test_there_is_a_histogram_of_the_weights_and_one_of_the_gradients_per_layer():
    model = small_model(one=[1.0, 2.0], other=[3.0])
    summary = histograms(model, Inspected([tf.constant([0.1, 0.2]), tf.constant([0.3])], before=[]))
    largest = {value.tag: make_ndarray(value.tensor)[-1, 1] for value in summary.value}
    assert largest == {
        "weights/one": 2.0,
        "weights/other": 3.0,
        "gradients/one": pytest.approx(0.2),
        "gradients/other": pytest.approx(0.3),
    }


# when


@pytest.mark.nightly
def test_a_run_writes_them_at_these_steps_to_the_writer_of_training(tmp_path):
    fit_in(tmp_path, reusable().from_the_start(), steps=5, histograms_every=2)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    name = "train/update_ratio/encoder_block_1/feed_forward"
    ratios = {line["step"]: line[name] for line in lines if name in line}
    assert list(ratios) == [2, 4] and all(0 < ratio < 1 for ratio in ratios.values())
    added = read_added(tmp_path / "tensorboard")
    for name in ("train/weights/embedding", "train/gradients/decoder_block_1/norms"):
        assert [step for step, _ in added[name]] == [2, 4]
