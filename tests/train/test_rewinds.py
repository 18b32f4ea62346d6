"""Going back to a checkpoint, whatever trains: how often, and what is counted. `test_divergence.py` trains models."""

import pytest

from train.loop.checkpoints import CheckpointError
from train.loop.divergence import REWINDS, DivergenceError, train_with_rewinds
from train.loop.progress import Progress


class Calls:
    """A train_from that counts, and diverges every time, or `enough` times."""

    def __init__(self, enough=100):
        self.count, self.enough = 0, enough

    def __call__(self, progress):
        self.count += 1
        assert self.count < 100
        if self.count > self.enough:
            return
        raise DivergenceError("Step 3", "advice")


def test_a_rewind_that_restores_nothing_ends_too():
    train_from, progress = Calls(), Progress(step=3)
    with pytest.raises(DivergenceError, match=f"{REWINDS} batches .* checkpoint of step 3"):
        train_with_rewinds(train_from, lambda: progress, progress)
    assert train_from.count == REWINDS + 1


def test_so_many_rewinds_as_are_allowed_may_be_needed():
    train_from, progress = Calls(enough=REWINDS), Progress(step=3)
    assert train_with_rewinds(train_from, lambda: progress, progress) is progress
    assert train_from.count == REWINDS + 1


def test_what_a_rewind_throws_away_has_taken_its_time():
    """Of 10 seconds after the checkpoint, on two cores, none is lost from the time and the core hours of report.md."""
    found = []

    def train_from(progress):
        found.append((progress.step, progress.seconds, progress.core_seconds))
        if len(found) < 3:
            progress.step = 9
            progress.seconds, progress.core_seconds = progress.seconds + 10, progress.core_seconds + 20
            raise DivergenceError("Step 10", "advice")

    train_with_rewinds(train_from, lambda: Progress(step=3, seconds=5.0, core_seconds=10.0), Progress(3, 5.0, 10.0))
    assert found == [(3, 5, 10), (3, 15, 30), (3, 25, 50)]


def test_a_rewind_without_a_checkpoint_is_one_sentence():
    with pytest.raises(CheckpointError, match="Step 3 .*checkpoint .*gone"):
        train_with_rewinds(Calls(), lambda: None, Progress())
