"""Ending before the last step: on request after the step at hand, never for a full disk."""

import errno
import logging
import os
import signal
import types

import pytest

from train.loop.callbacks import SaveCheckpoints, StopWhenAsked
from train.loop.checkpoints import CheckpointError
from train.loop.progress import Progress
from train.loop.stopping import StopRequest


class Disk:
    """Stands for Checkpoints: remembers what was saved, or is full."""

    def __init__(self, is_full=False):
        self.saved, self.is_full = [], is_full

    def save(self, step, model, optimizer, progress):
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.saved.append((step, progress))


def with_model(callback):
    callback.set_model(types.SimpleNamespace(stop_training=False, optimizer=None))
    return callback


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_asks_and_the_handlers_come_back(number):
    before = signal.getsignal(number)
    with StopRequest().listening() as request:
        assert not request.is_made
        os.kill(os.getpid(), number)
        assert request.is_made
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL  # a second Ctrl-C leaves at once
    assert signal.getsignal(number) is before


def test_a_request_stops_training_and_the_checkpoint_of_that_step_is_written():
    request, disk, progress = StopRequest(), Disk(), Progress(step=7)
    stop = with_model(StopWhenAsked(request))
    save = with_model(SaveCheckpoints(progress, disk, last_step=100, every=50))
    save.set_model(stop.model)
    for is_made in (False, True):
        request.is_made = is_made
        stop.on_train_batch_end(0)
        save.on_train_batch_end(0)
    assert stop.model.stop_training
    assert [step for step, _ in disk.saved] == [7]


@pytest.mark.parametrize("asked_here", [False, True])
def test_of_several_workers_each_goes_by_the_sum_of_all_requests(asked_here):
    request = StopRequest()
    request.is_made = asked_here  # amid this step: the sum of the next one has it
    stop = with_model(StopWhenAsked(request, is_alone=False))
    stop.on_train_batch_end(0, {"stop_requests": 0.0})
    assert not stop.model.stop_training
    stop.on_train_batch_end(0, {"stop_requests": 1.0})
    assert stop.model.stop_training


def test_checkpoints_are_written_every_so_many_steps_and_at_the_last():
    disk, progress = Disk(), Progress()
    save = with_model(SaveCheckpoints(progress, disk, last_step=7, every=3))
    for progress.step in range(1, 8):
        save.on_train_batch_end(0)
    assert [step for step, _ in disk.saved] == [3, 6, 7]
    assert disk.saved[-1][1]["step"] == 7


def test_a_full_disk_is_said_and_training_goes_on_until_a_checkpoint_that_cannot_be_missed(caplog):
    save = with_model(SaveCheckpoints(Progress(step=3), Disk(is_full=True), last_step=9, every=3))
    with caplog.at_level(logging.ERROR, logger="train"):
        save.on_train_batch_end(0)
    assert "step 3 could not be written" in caplog.text and "No space left" in caplog.text
    save.progress.step = 9
    with pytest.raises(CheckpointError, match="step 9 could not be written"):
        save.on_train_batch_end(0)
