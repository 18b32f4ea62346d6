"""Laws of R-Drop in the training step: two predictions with different dropout masks, pulled towards each other."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.losses import divergence_sum, token_sums
from tests.support.models import assert_close, normal
from tests.support.training import BATCHES, TINY, tensors, train, training_model, weights_of

FIRST_STEP = tf.constant(0), tf.constant(0)  # step, micro-batch


def sums_and_gradients(model, batch):
    sums, gradients = model.sums_and_gradients(tensors(batch), *FIRST_STEP)
    return [*sums, *gradients]


@pytest.mark.slow
def test_without_dropout_r_drop_changes_nothing():
    plain, twice = training_model(), training_model(r_drop=5.0)
    batch = BATCHES.batch(0)
    for one, other in zip(sums_and_gradients(plain, batch), sums_and_gradients(twice, batch), strict=True):
        assert_close(one, other)


@pytest.mark.slow
def test_r_drop_minimises_the_mean_loss_and_a_quarter_of_alpha_times_the_divergence():
    model, batch = training_model(r_drop=3.0), tensors(BATCHES.batch(0))
    logits = normal(2 * len(batch["labels"]), batch["labels"].shape[1], TINY.vocab_size)
    model.logits = lambda twice: tf.constant(logits)
    sums, objective = model.r_drop_sums(batch)
    first, second = np.split(logits, 2)
    segments = batch["target_segments"]
    each = [token_sums(half, batch["labels"], segments, TINY.label_smoothing) for half in (first, second)]
    for found, *two in zip(sums, *each, strict=True):
        assert_close(found, np.mean(two))
    assert_close(objective, sums.loss + 3.0 / 4 * divergence_sum(first, second, segments))


@pytest.mark.slow
def test_the_two_predictions_of_r_drop_have_different_masks():
    model = training_model(dropout=0.5, r_drop=1.0)
    batch = tensors(BATCHES.batch(0))
    with keras.StatelessScope(state_mapping=model.dropout_states(*FIRST_STEP)):
        sums, objective = model.r_drop_sums(batch)
    assert objective > sums.loss + 1e-3


@pytest.mark.slow
def test_a_run_with_r_drop_resumes_bit_for_bit():
    model = training_model(dropout=0.5, r_drop=2.0, micro_batches=2)
    train(model, 0, 1)
    after_one = [np.array(variable.value) for variable in (*model.variables, *model.optimizer.variables)]
    train(model, 1, 3)
    resumed = training_model(dropout=0.5, r_drop=2.0, micro_batches=2, weights_seed=7)
    for variable, value in zip((*resumed.variables, *resumed.optimizer.variables), after_one, strict=True):
        variable.assign(value)
    train(resumed, 1, 3)
    for one, other in zip(weights_of(model), weights_of(resumed), strict=True):
        np.testing.assert_array_equal(one, other)
