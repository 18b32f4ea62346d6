"""What follows each update, in order: divergence, counts, metrics, console, stop request, validation, checkpoint."""

import logging
import math
import types

import keras
import pytest

from keras_transformer.ground.machine import processor_cores
from tests.support.updates import LOGS, Clock, Run
from train.config.training import TrainingConfig
from train.loop.checkpoints import CheckpointError
from train.loop.divergence import DivergenceCheck, DivergenceError
from train.loop.progress import Progress


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


# the order


def test_after_an_update_come_divergence_metrics_weights_validation_inspections_and_the_checkpoint():
    run = Run(steps=1)
    run.step()
    checks, validation = [("check", 0), ("write", 1), ("check weights", 1)], [("validate", 1), ("write", 1)]
    assert run.done == [*checks, *validation, ("inspect", 1), ("save", 1)]


def test_a_diverged_step_is_not_counted_written_validated_or_saved():
    run = Run(is_diverged=True, steps=1)
    run.request.is_made = True
    with pytest.raises(DivergenceError):
        run.step()
    assert run.done == [("check", 0)]
    assert run.progress == Progress()


@pytest.mark.parametrize(
    ("key", "what"), [("validate_every", "validate"), ("validate_every", "inspect"), ("checkpoint_every", "save")]
)
def test_validation_and_checkpoints_come_every_so_many_steps_and_after_the_last(key, what):
    run = Run(steps=7, **{key: 3})
    for _ in range(7):
        run.step()
    assert run.steps_of(what) == [3, 6, 7] and not any(progress["is_interim"] for progress in run.saved)


@pytest.mark.parametrize("checkpoint_every", [2, 3])
def test_the_checkpoint_of_a_validation_that_failed_is_one_to_keep_if_it_was_due(checkpoint_every, monkeypatch):
    run = Run(validate_every=2, checkpoint_every=checkpoint_every)
    run.step()
    run.callback.records = run.callback.records._replace(validate=lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run.step()
    assert [(progress["step"], progress["is_interim"]) for progress in run.saved] == [(2, checkpoint_every == 3)]


def test_the_checkpoint_of_a_run_that_ends_since_nothing_gets_better_is_one_to_keep():
    run = Run(validate_every=2, checkpoint_every=3, patience=1)
    run.scores = {"bleu": 10.0}
    for _ in range(4):
        run.step()
    assert run.model.stop_training and [progress["step"] for progress in run.saved] == [3, 4]
    assert not any(progress["is_interim"] for progress in run.saved)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("is_last", [False, True], ids=["a checkpoint due", "asked to stop"])
def test_weights_that_are_not_finite_are_a_divergence_of_their_step_and_in_no_checkpoint(value, is_last):
    run = Run(checkpoint_every=3)
    weights = [keras.Variable([1.0, 2.0], name="kernel"), keras.Variable(7, dtype="int32", name="count")]
    run.model.weights = weights
    for _ in range(2):
        run.step()
    batches = types.SimpleNamespace(rows_per_batch=4)
    run.callback.check_divergence = DivergenceCheck(batches, 500, TrainingConfig())
    weights[0].assign([1.0, value])
    if is_last:
        run.request.is_made = True
    with pytest.raises(
        DivergenceError, match="Step 3, on batch 2 of the stream .* left weights that are not finite: kernel"
    ):
        run.step(stop_requests=float(is_last))
    assert run.saved == [] and run.progress.step == 2


# what is counted and written


def test_steps_tokens_and_seconds_are_counted_on_from_where_the_run_stands(clock):
    run = Run(Progress(step=10, seconds=5.0, target_tokens=100.0))
    for _ in range(2):
        clock.now += 0.5  # validation, a checkpoint
        run.callback.on_train_batch_begin(0)
        clock.now += 2.0
        run.callback.on_train_batch_end(0, LOGS)
    assert run.progress == Progress(step=12, seconds=10.0, core_seconds=5.0 * processor_cores(), target_tokens=240.0)


def test_a_checkpoint_has_the_time_of_the_validation_before_it_and_counts_it_once(clock, monkeypatch):
    run, cores = Run(validate_every=2, checkpoint_every=2), processor_cores()
    monkeypatch.setattr(run, "inspect", lambda step: setattr(clock, "now", clock.now + 100.0))  # a part of validation
    for _ in range(4):
        run.callback.on_train_batch_begin(0)
        clock.now += 1.0
        run.callback.on_train_batch_end(0, LOGS)
    assert [(saved["seconds"], saved["core_seconds"] / cores) for saved in run.saved] == [(102, 102), (204, 204)]


def test_in_float16_the_share_of_refused_updates_is_written():
    run = Run(Progress(step=9), precision="mixed_float16")
    run.model.optimizer = types.SimpleNamespace(iterations=8)
    run.step()
    assert run.written[0][1]["train/overflow_share"] == pytest.approx(0.2)


def test_an_undefined_bleu_is_logged_with_its_reason_and_is_no_number_in_the_curves(caplog):
    run = Run(validate_every=1)
    run.scores = {"bleu": 0.0, "undefined": "no reference has four tokens"}
    with caplog.at_level(logging.INFO, logger="train"):
        run.step()
    assert math.isnan(run.written[-1][1]["validation/bleu"])
    assert "BLEU n/a (no reference has four tokens)  exact 25.0%" in caplog.text and "patience" not in caplog.text
    run = Run(validate_every=1, patience=3)
    run.scores = {"bleu": 0.0, "undefined": "no reference has four tokens"}
    run.step()
    assert "the bleu of this validation is undefined" in caplog.text and '"chrf" or "loss"' in caplog.text


# the best checkpoint


# a full disk


def test_a_full_disk_is_logged_and_training_continues(caplog):
    run = Run(is_full=True, checkpoint_every=3)
    with caplog.at_level(logging.ERROR, logger="train"):
        for _ in range(4):
            run.step()
    (message,) = caplog.messages
    assert "checkpoint of step 3 " in message and "No space left" in message
    assert run.progress.step == 4


@pytest.mark.parametrize("is_asked_to_stop", [False, True])
def test_a_last_checkpoint_that_cannot_be_written_is_one_sentence(is_asked_to_stop):
    run = Run(is_full=True, steps=100 if is_asked_to_stop else 1)
    run.request.is_made = is_asked_to_stop
    with pytest.raises(CheckpointError, match="checkpoint of step 1 .*No space left.*Make room"):
        run.step()


# compilation
