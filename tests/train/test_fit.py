"""`fit` from where a run folder stands to the last step: resumption, requests to stop, checkpoints, full disks."""

import os
import re
import signal

import pytest
import tensorflow as tf

from keras_transformer.ground.errors import ConfigError, Interrupted
from tests.support.runs import steps_of
from tests.support.training import (
    TRAINING,
    assert_same_weights,
    checkpoint_names,
    fit_in,
    no_validation,
    reusable,
    training_model,
    weights_of,
)
from train.loop.fit import log_end, log_start
from train.loop.progress import Progress

EVERY = {"steps": 6, "checkpoint_every": 2, "validate_every": 2}


# the order, with collaborators that note what is done


@pytest.mark.parametrize(
    ("step", "misses", "start", "end"),
    [
        (0, 0, "", "Stopped after step 0"),
        (4, 1, "continuing from the checkpoint of step 4", "Stopped after step 4"),
        (4, 2, "continuing from the checkpoint of step 4 stopped early after step 4", "stopped early after step 4"),
        (6, 0, "continuing from the checkpoint of step 6 all 6 steps are done", "trained 6 steps in 3 s"),
    ],
)
def test_the_log_tells_from_where_training_continues_and_how_it_ended(caplog, step, misses, start, end):
    progress = Progress(step, seconds=3.0, best_metric="bleu", validations_since_best=misses)
    training = TRAINING.model_copy(update={"steps": 6, "patience": 2})
    beginnings = [message.split(":")[0] for message in logged(caplog, lambda: log_start(progress, training))]
    assert beginnings == [part for part in re.split(r" (?=stopped|all)", start) if part]
    (first, *_) = logged(caplog, lambda: log_end(progress, training))
    assert first.startswith(end)


def logged(caplog, function):
    """The messages of a function, and the one that ended it."""
    caplog.clear()
    with caplog.at_level("INFO", logger="train"):
        try:
            function()
        except Interrupted as error:
            return [str(error)]
    return caplog.messages


@pytest.mark.parametrize(("skipped", "end"), [([], "in 3 s"), ([4, 7], "in 3 s; batches left out: 2")])
def test_the_log_ends_with_the_batches_that_were_left_out(caplog, skipped, end):
    (message,) = logged(
        caplog, lambda: log_end(Progress(6, 3.0, skipped=skipped), TRAINING.model_copy(update={"steps": 6}))
    )
    assert message == f"trained 6 steps {end}"


# training


@pytest.mark.slow
def test_a_signal_stops_after_the_step_with_its_checkpoint_and_the_same_call_continues(tmp_path):
    def ask():
        if not checkpoint_names(tmp_path):  # after step 2, before its checkpoint
            os.kill(os.getpid(), signal.SIGTERM)
        return no_validation()

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted, match="Stopped after step 3; .*same command"):
        fit_in(tmp_path, reusable(dropout=0.2).from_the_start(), validate=ask, **EVERY)
    assert checkpoint_names(tmp_path) == ["step-00000002.npz", "step-00000003.npz"]
    assert signal.getsignal(signal.SIGTERM) is before
    stopped = training_model(dropout=0.2, weights_seed=2)  # as in another process
    fit_in(tmp_path, stopped, **EVERY)
    calm = reusable(dropout=0.2).from_the_start()
    fit_in(tmp_path / "calm", calm, **EVERY)
    assert_same_weights(weights_of(stopped), weights_of(calm))
    assert steps_of(tmp_path) == steps_of(tmp_path / "calm") == [1, 2, 3, 4, 5, 6]


@pytest.mark.slow
def test_a_signal_in_the_last_validation_is_no_step_less_but_ends_before_the_report(tmp_path):
    def ask():
        if "step-00000006.npz" in checkpoint_names(tmp_path) or asked == [2, 4]:
            os.kill(os.getpid(), signal.SIGTERM)
        asked.append(2 * len(asked) + 2)
        return no_validation()

    asked, model = [], reusable().from_the_start()
    with pytest.raises(Interrupted, match="All steps of .* are done, its report is not: run the same command again"):
        fit_in(tmp_path, model, validate=ask, **EVERY)
    assert asked == [2, 4, 6] and checkpoint_names(tmp_path)[-1] == "step-00000006.npz"
    assert fit_in(tmp_path, model, validate=ask, **EVERY).step == 6 and len(asked) == 3


@pytest.mark.slow
@pytest.mark.parametrize("error", [ValueError("of a validation"), tf.errors.ResourceExhaustedError(None, None, "OOM")])
def test_a_validation_that_fails_loses_no_step(tmp_path, error):
    def fail():
        raise error

    with pytest.raises((ValueError, ConfigError)) as raised:
        fit_in(tmp_path, reusable().from_the_start(), validate=fail, steps=6, validate_every=5, checkpoint_every=3)
    assert checkpoint_names(tmp_path) == ["step-00000003.npz", "step-00000005.npz"]
    if isinstance(error, tf.errors.OpError):
        for part in ("Memory was exhausted after step 5", "OOM.", "training.micro_batches", "translation.batch_size"):
            assert part in str(raised.value)
    again = tmp_path / "again"
    with pytest.raises((ValueError, ConfigError)):
        fit_in(again, reusable().from_the_start(), validate=fail, steps=6, validate_every=3, checkpoint_every=3)
    fit_in(again, reusable().from_the_start(), steps=6, checkpoint_every=3)
    assert checkpoint_names(again) == ["step-00000003.npz", "step-00000006.npz"]  # 3 is among those to be averaged
    calm, resumed = tmp_path / "calm", reusable().from_the_start()
    fit_in(tmp_path, resumed, **EVERY)
    weights = weights_of(resumed)
    fit_in(calm, straight := reusable().from_the_start(), **EVERY)
    assert_same_weights(weights, weights_of(straight))
