"""`fit` from where a run folder stands to the last step: resumption, requests to stop, checkpoints, full disks."""

import contextlib
import errno
import os
import re
import signal
import types

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.config import ConfigError
from keras_transformer.errors import Interrupted
from keras_transformer.run_folder import RunFolder
from tests.support.runs import metrics_of
from tests.support.training import (
    BATCHES,
    TRAINING,
    checkpoint_names,
    fit_in,
    no_validation,
    reusable,
    training_model,
    weights_of,
)
from train.loop.callbacks import Records
from train.loop.checkpoints import Checkpoints
from train.loop.fit import fit, fit_from, log_end, log_start, records_of
from train.loop.progress import Progress

EVERY = {"steps": 6, "checkpoint_every": 2, "validate_every": 2}


def steps_of(folder):
    return [record["step"] for record in metrics_of(folder) if "train/loss" in record]


def assert_same_weights(weights, others):
    for one, two in zip(weights, others, strict=True):
        np.testing.assert_array_equal(one, two)


# the order, with collaborators that note what is done


@pytest.fixture
def begun(monkeypatch, tmp_path):
    """A function that calls `fit` and returns what was done: (what, step). The steps are done at once."""

    def begin(restored=None, is_chief=True, checkpoints=(), asks=False, **training):
        done, vocabularies = [], []

        @contextlib.contextmanager
        def records_of(is_chief, config, folder, first_step, *_):
            assert first_step == (restored or Progress()).step
            metrics = types.SimpleNamespace(add=lambda writer, step, graph: done.append((graph, step)))
            yield types.SimpleNamespace(metrics=metrics) if is_chief else None

        def train(progress, last_step, *_):
            done.append(("train", progress.step))
            progress.step = last_step
            if asks:
                os.kill(os.getpid(), signal.SIGTERM)

        for name, stand_in in {
            "Checkpoints": lambda folder, keep: types.SimpleNamespace(paths=lambda: checkpoints),
            "save_start": lambda checkpoints, model, progress: done.append(("save", progress.step)),
            "restore_everywhere": lambda *_: done.append(("restore", None)) or restored,
            "graph_summary": lambda *_: "graph", "records_of": records_of, "fit_from": train,
            "DivergenceCheck": lambda batches, vocab_size, training: vocabularies.append(vocab_size),
        }.items():  # fmt: skip
            monkeypatch.setattr(f"train.loop.fit.{name}", stand_in)
        worker = types.SimpleNamespace(count=2, is_chief=is_chief)
        workers = types.SimpleNamespace(
            worker=worker, is_chief=is_chief, strategy=None, wait=lambda: done.append(("wait", None))
        )
        model = types.SimpleNamespace(output=np.zeros((1, 6, 23)))
        config = types.SimpleNamespace(training=TRAINING.model_copy(update={"steps": 6} | training))
        missing = pytest.raises(Interrupted, match=f"All steps of {tmp_path} are done, its report is not: run the same")
        with missing if asks and is_chief else contextlib.nullcontext():
            assert fit(config, RunFolder(tmp_path), BATCHES, model, None, workers).step == 6
        assert vocabularies in ([], [23])
        return done

    return begin


def test_training_begins_where_the_last_checkpoint_stands_and_a_new_run_with_its_graph(begun):
    restore, wait = ("restore", None), ("wait", None)
    assert begun() == [restore, ("graph", 0), ("train", 0), wait]
    assert begun(Progress(4)) == [restore, ("train", 4), wait]
    assert begun(Progress(6)) == [restore]
    assert begun(is_chief=False) == [restore, ("train", 0), wait]


def test_a_checkpoint_of_step_0_is_written_by_the_chief_of_a_run_that_may_need_it(begun):
    for needs in ({"start_from": "a run"}, {"on_divergence": "rewind"}):
        assert begun(**needs)[0] == ("save", 0)
        assert begun(is_chief=False, **needs)[0] == begun(checkpoints=["step-00000002.npz"], **needs)[0]
    assert begun()[0] == ("restore", None)


@pytest.mark.parametrize("is_chief", [True, False])
def test_after_the_last_step_a_request_to_stop_is_the_chiefs_who_writes_the_report(begun, is_chief):
    assert begun(Progress(4), is_chief, asks=True) == [("restore", None), ("train", 4), ("wait", None)]


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
def test_six_checkpoints_of_which_three_are_kept_leave_the_last_three(tmp_path):
    fit_in(tmp_path, reusable().from_the_start(), steps=6, checkpoint_every=1, keep_checkpoints=3)
    assert checkpoint_names(tmp_path) == [f"step-{step:08d}.npz" for step in (4, 5, 6)]


@pytest.mark.slow
def test_a_resumed_run_counts_on_from_the_progress_of_its_checkpoint(tmp_path):
    model, before = training_model(), Progress(4, seconds=900.0, target_tokens=1e6, has_learned=True, skipped=[1])
    Checkpoints(tmp_path / "checkpoints").save(model, model.optimizer, before)
    assert fit_in(tmp_path, training_model(weights_seed=2), steps=4) == before
    after = fit_in(tmp_path, reusable().from_the_start(), steps=5)
    assert (after.step, after.has_learned, after.skipped) == (5, True, [1])
    assert 900 < after.seconds and 1e6 < after.target_tokens <= 1e6 + 64
    assert steps_of(tmp_path) == [5]


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
def test_a_disk_that_is_full_during_training_loses_no_step(tmp_path, monkeypatch, caplog):
    save = Checkpoints.save

    def save_if_there_is_room(checkpoints, model, optimizer, progress):
        if progress.step == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        save(checkpoints, model, optimizer, progress)

    monkeypatch.setattr(Checkpoints, "save", save_if_there_is_room)
    assert fit_in(tmp_path, reusable().from_the_start(), **EVERY).step == 6
    assert checkpoint_names(tmp_path) == ["step-00000004.npz", "step-00000006.npz"]
    assert steps_of(tmp_path) == [1, 2, 3, 4, 5, 6]
    assert "checkpoint of step 2 could not be written" in caplog.text


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


@pytest.mark.parametrize("error", [None, ZeroDivisionError, KeyboardInterrupt])
def test_an_epoch_that_is_being_prepared_is_given_up_however_training_ends(monkeypatch, error):
    """It can take minutes, for which the process would wait at its end."""
    given_up, asked = [], {}

    def train(*arguments, **named):
        asked.update(named)
        if error:
            raise error

    for name in ("training_dataset", "distributed"):
        monkeypatch.setattr(f"train.loop.fit.{name}", lambda *arguments: None)
    model, batches = types.SimpleNamespace(fit=train), types.SimpleNamespace(give_up=lambda: given_up.append(True))
    with pytest.raises(error) if error else contextlib.nullcontext():
        fit_from(Progress(2), 5, model, batches, strategy=None, callbacks=["ours"])
    assert given_up
    (own, gives_up) = asked.pop("callbacks")
    assert asked == {"steps_per_epoch": 3, "shuffle": False, "verbose": 0} and own == "ours"
    given_up.clear()
    gives_up.on_train_end({})
    assert given_up


@pytest.mark.parametrize("is_chief", [True, False])
def test_the_chief_alone_has_records_which_go_on_after_the_first_step_and_are_closed(monkeypatch, is_chief):
    calls = []
    metrics = types.SimpleNamespace(close=lambda: calls.append("closed"))
    monkeypatch.setattr("train.loop.fit.MetricsLog", lambda *arguments: calls.append(arguments) or metrics)
    with pytest.raises(ZeroDivisionError):
        with records_of(is_chief, "config", "folder", 7, "checkpoints", "validate", lambda log: [log]) as records:
            raise ZeroDivisionError
    assert calls == ([("folder", 7, "config"), "closed"] if is_chief else [])
    assert records == (Records(metrics, "checkpoints", "validate", [metrics]) if is_chief else None)
