"""Laws of the dropout rate of the cool-down: that of a model with this rate, from the first update of the cool-down."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.config import ConfigError
from keras_transformer.layers.dropout import Dropout
from keras_transformer.recurrent.config import RecurrentConfig
from tests.support.models import assert_close
from tests.support.runs import write_config
from tests.support.training import BATCHES, TINY, tensors, train, training_model, weights_of
from train.config import TrainingConfig, load_config
from train.loop.idle_keys import check_idle_keys
from train.step.dropout_rate import dropout_rate_of
from train.step.optimizer import training_schedule

RECURRENT = RecurrentConfig(vocab_size=TINY.vocab_size, d_model=16, encoder_layers=2, decoder_layers=2)
COOLING = {"steps": 6, "cooldown_steps": 4, "cooldown_dropout": 0.1}


def sums_and_gradients(model, step):
    sums, gradients = model.sums_and_gradients(tensors(BATCHES.batch(0)), tf.constant(step), tf.constant(0))
    return [*sums, *gradients]


def test_the_rate_changes_with_the_first_update_of_the_cool_down():
    training = TrainingConfig(schedule="constant", **COOLING)
    rate, schedule = dropout_rate_of(0.3, training), training_schedule(8, training)
    assert_close([rate(tf.constant(step)) for step in range(6)], [0.3, 0.3, 0.1, 0.1, 0.1, 0.1])
    assert_close([schedule(step) / 1e-3 for step in range(6)], [1, 1, 1, 0.75, 0.5, 0.25])


@pytest.mark.parametrize(
    "training", [{}, {"cooldown_dropout": 0.1}, {"cooldown_steps": 4}, {"cooldown_steps": 4, "cooldown_dropout": 0.3}]
)
def test_without_another_rate_for_a_cool_down_each_layer_keeps_its_own(training):
    assert dropout_rate_of(0.3, TrainingConfig(**training)) is None


@pytest.mark.slow
@pytest.mark.parametrize("config", [TINY, RECURRENT])
@pytest.mark.parametrize(("step", "rate"), [(1, 0.3), (2, 0.1), (5, 0.1)])
def test_a_step_has_the_loss_and_the_gradients_of_a_model_with_its_rate(step, rate, config):
    cooling, other = training_model(0.3, config=config, **COOLING), training_model(rate, config=config)
    for found, expected in zip(sums_and_gradients(cooling, step), sums_and_gradients(other, step), strict=True):
        assert_close(found, expected, atol=1e-5)


@pytest.mark.slow
def test_a_run_that_is_killed_in_the_cool_down_or_before_it_resumes_bit_for_bit():
    whole = training_model(dropout=0.5, micro_batches=2, xla=True, **COOLING)
    states = []
    for step in range(6):
        states.append([np.array(variable.value) for variable in (*whole.variables, *whole.optimizer.variables)])
        train(whole, step, step + 1)
    for begin in (1, 4):
        resumed = training_model(dropout=0.5, micro_batches=2, weights_seed=7, xla=True, **COOLING)
        for variable, value in zip((*resumed.variables, *resumed.optimizer.variables), states[begin], strict=True):
            variable.assign(value)
        train(resumed, begin, 6)
        for one, other in zip(weights_of(whole), weights_of(resumed), strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_layers_themselves_keep_their_rate():
    model = training_model(dropout=0.3, **COOLING)
    sums_and_gradients(model, 5)
    layer, ones = Dropout(0.3, seed=1), np.ones(1000, "float32")
    assert float(keras.ops.max(layer(ones, training=True))) == pytest.approx(1 / 0.7)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (["training.cooldown_steps=0"], "training.cooldown_steps is 0"),
        (["training.cooldown_steps=5", "training.dropout=0.0"], "the dropout is 0"),
    ],
)
def test_a_rate_that_nothing_would_have_is_refused(tmp_path, settings, reason):
    config = load_config(write_config(tmp_path), ["training.cooldown_dropout=0.1", *settings])
    with pytest.raises(
        ConfigError, match=f"training.cooldown_dropout is 0.1, and {reason}.*leave cooldown_dropout out"
    ):
        check_idle_keys(config)


@pytest.mark.parametrize("dropout", ["0.1", "0.2"])
def test_a_rate_that_a_cool_down_has_or_that_changes_nothing_is_none_to_refuse(tmp_path, dropout):
    settings = [f"training.dropout={dropout}", f"training.cooldown_steps={5 if dropout == '0.2' else 0}"]
    check_idle_keys(load_config(write_config(tmp_path), ["training.cooldown_dropout=0.1", *settings]))
