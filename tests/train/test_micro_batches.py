"""Micro-batches found by trial: the fewest that fit, with nothing changed by the trial."""

import contextlib
import logging
import types

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.ground.errors import ConfigError
from tests.support.training import BATCHES, TINY, TRAINING, momenta_of, training_model, weights_of
from train.cost import micro_batches
from train.cost.micro_batches import find_micro_batches, step_fits
from train.step.training_model import TrainingModel

ASKED = TRAINING.model_copy(update={"find_micro_batches": True})


def find(compiled, training=ASKED):
    return find_micro_batches(training, TINY, BATCHES, tf.distribute.get_strategy(), compiled)


@pytest.fixture
def tried(monkeypatch):
    """The numbers of micro-batches that were tried, of which those below `tried.enough` fail."""

    class Tried(list):
        enough = 1

    tried = Tried()
    monkeypatch.setattr(micro_batches, "step_fits", lambda count, *_: tried.append(count) or count >= tried.enough)
    monkeypatch.setattr(micro_batches, "free_memory", lambda: None)
    return tried


@pytest.mark.parametrize(
    ("first", "enough", "expected"), [(1, 1, [1]), (1, 2, [1, 2]), (1, 3, [1, 2, 4]), (2, 1, [2]), (3, 1, [4])]
)
def test_the_first_divisor_of_the_rows_that_fits_is_fixed(tried, caplog, first, enough, expected):
    tried.enough = enough
    with caplog.at_level(logging.INFO, logger="train"):
        fixed, count = find(lambda training: training.micro_batches, ASKED.model_copy(update={"micro_batches": first}))
    assert tried == expected and count == expected[-1]
    assert fixed == TRAINING.model_copy(update={"micro_batches": count})
    step = f"a step of {count} micro-batches, {4 // count} rows at once per device, fits in memory; config.toml records"
    assert len(caplog.messages) == len(expected) and caplog.messages[-1].startswith(step)


def test_if_nothing_fits_it_is_one_sentence(tried):
    tried.enough = 99
    with pytest.raises(ConfigError, match="one row of 16 positions .* \\[model\\]"):
        find(lambda training: training.micro_batches)
    assert tried == [1, 2, 4]


class Exhausted:
    """A loss that is only computed when it is read."""

    def __float__(self):
        raise tf.errors.ResourceExhaustedError(None, None, "OOM")


@pytest.mark.parametrize("loss", [1.0, Exhausted(), MemoryError(), ValueError()])
def test_a_step_fits_unless_memory_is_exhausted_and_is_undone(loss):
    weight, moment = tf.Variable([1.0, 2.0]), tf.Variable([3.0])

    def step(batches):
        assert next(batches)["labels"].shape == (4, 16)
        weight.assign([7.0, 8.0]), moment.assign([9.0])
        if isinstance(loss, Exception):
            raise loss
        return {"loss": loss}

    model = types.SimpleNamespace(trainable_variables=[weight], optimizer=types.SimpleNamespace(variables=[moment]))
    for variable in (weight, moment):
        variable.value = variable.numpy()
    model.make_train_function = lambda: step
    with pytest.raises(ValueError) if isinstance(loss, ValueError) else contextlib.nullcontext():
        assert step_fits(model, BATCHES, tf.distribute.get_strategy()) is (loss == 1.0)
    assert (weight.numpy().tolist(), moment.numpy().tolist()) == ([1.0, 2.0], [3.0])


@pytest.mark.nightly
def test_neither_a_step_that_does_not_fit_nor_the_one_that_fits_changes_anything(monkeypatch):
    compute, models, starts = TrainingModel.sums_and_gradients, [], []

    def with_memory_for_two_rows(model, batch, *arguments):
        if batch["source_ids"].shape[0] > 2:
            raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")
        return compute(model, batch, *arguments)

    def compiled(training):
        models.append(training_model(micro_batches=training.micro_batches))
        starts.append(weights_of(models[-1]))
        return models[-1]

    monkeypatch.setattr(TrainingModel, "sums_and_gradients", with_memory_for_two_rows)
    fixed, model = find(compiled)
    assert fixed.micro_batches == 2 and model is models[-1]
    assert int(model.optimizer.iterations) == 0 and not any(moment.any() for moment in momenta_of(model))
    for weight, other, first in zip(*map(weights_of, models), starts[-1], strict=True):
        np.testing.assert_array_equal(weight, first)
        np.testing.assert_array_equal(other, first)
