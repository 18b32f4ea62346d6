"""A profile of chosen steps: from the first to the last of them, once, and nothing is lost if it fails."""

import logging
import types

import pytest
import tensorflow as tf

from tests.support.training import fit_in, reusable
from train.loop.profile import ProfileSteps
from train.loop.progress import Progress


@pytest.fixture
def profiler(monkeypatch):
    """Stands for TensorFlow's profiler: notes what it is asked to do, and the steps that are marked."""
    done = []
    stand_in = types.SimpleNamespace(
        start=lambda folder: done.append(("start", folder)),
        stop=lambda: done.append("stop"),
        Trace=lambda name, step_num, _r: types.SimpleNamespace(__exit__=lambda *_: done.append(step_num)),
        done=done,
    )
    monkeypatch.setattr(tf.profiler, "experimental", stand_in)
    return stand_in


def train(profile, progress, last, done=None):
    """Take the steps up to `last`; then note the end of `fit`, and close the profile."""
    while progress.step < last:
        profile.on_train_batch_begin(0)
        profile.on_train_batch_end(0, {"loss": 1.0})
        progress.step += 1
    if done is not None:
        done.append("end")
    profile.close()


@pytest.mark.parametrize(
    ("first_step", "last_step", "expected"),
    [
        (0, 9, [("start", "folder"), 3, 4, 5, "stop", "end"]),
        (3, 9, [("start", "folder"), 4, 5, "stop", "end"]),  # continued within these steps: the rest of them
        (5, 9, ["end"]),
        (0, 2, ["end"]),
        (0, 4, [("start", "folder"), 3, 4, "end", "stop"]),  # it ends within them, by a request to stop or a divergence
    ],
)
def test_it_is_of_those_of_the_steps_that_are_taken(profiler, first_step, last_step, expected):
    progress = Progress(first_step)
    train(ProfileSteps([3, 5], progress, "folder"), progress, last_step, profiler.done)
    assert profiler.done == expected


@pytest.mark.parametrize("call", ["start", "stop"])
def test_one_that_fails_is_logged_and_training_continues(profiler, caplog, call):
    def refuse(*_):
        raise tf.errors.UnavailableError(None, None, "No space left")

    setattr(profiler, call, refuse)
    progress = Progress()
    with caplog.at_level(logging.ERROR, logger="train"):
        train(ProfileSteps([3, 5], progress, "folder"), progress, 9)
    (message,) = caplog.messages
    assert "[3, 5]" in message and "No space left" in message
    assert progress.step == 9


@pytest.mark.slow
def test_a_run_leaves_one_for_the_profile_tab_and_no_second_one_when_it_is_continued(tmp_path):
    reusable().from_the_start()
    for steps in (3, 4):
        fit_in(tmp_path, reusable().model, steps=steps, profile_steps=[2, 3])
        (profile,) = (tmp_path / "tensorboard" / "plugins" / "profile").glob("*/*.xplane.pb")
        assert profile.stat().st_size > 1000
