"""Killed at any moment and started again, a run ends as if nothing had happened: weights bit for bit, curves whole."""

import random
import time

import h5py
import numpy as np
import pytest
from tensorboard.plugins.graph.metadata import RUN_GRAPH_NAME

from tests.support.events import read_events, steps_in
from tests.support.processes import end, start_fork, start_python, wait_until
from tests.support.runs import metrics_of, write_config

pytestmark = pytest.mark.release

KILLS = 3  # amid a write, at a random moment, amid a write
STEPS = 100 * KILLS
OPTIONS = (
    "training.checkpoint_every=7",
    "training.validate_every=1000",
    "training.histograms_every=10",
    "training.xla=true",
    "training.bpe_dropout=0.1",
    "training.guided_alignment=0.1",
    "training.ema_decay=0.9",
    "training.cooldown_steps=50",
    "translation.beam_size=1",
)


def start(config, log, how=start_fork):
    options = [word for option in (*OPTIONS, f"training.steps={STEPS}") for word in ("--set", option)]
    return how("-m", "train", config, *options, log=log, XLA_FLAGS="")


def finish(config, log, how=start_fork):
    assert end([start(config, log, how)]) == [0], log.read_text(encoding="utf-8")


def kill_at_a_random_moment(process, checkpoints, chance, is_amid_a_write):
    """After the first checkpoint that this process has written; half of the time while it writes another."""
    before = set(checkpoints.glob("*.npz"))
    wait_until(lambda: set(checkpoints.glob("*.npz")) - before, [process])
    if is_amid_a_write:
        wait_until(lambda: any(checkpoints.glob("*.part")), [process], pause=0.0005)
    else:
        time.sleep(0.3 * chance.random())
    was_running = process.poll() is None
    process.kill()
    process.wait()
    return was_running


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The run folders of a run that was left in peace and of one that was killed, and how many kills hit it."""
    folder, chance = tmp_path_factory.mktemp("killed"), random.Random(1)
    calm, killed = write_config(folder, "calm"), write_config(folder, "killed")
    log, checkpoints = folder / "log", folder / "killed" / "checkpoints"
    finish(calm, log, start_python)  # a process that was not forked gives the same bits
    hits = [
        kill_at_a_random_moment(start(killed, log), checkpoints, chance, is_amid_a_write=number % 2 == 0)
        for number in range(KILLS)
    ]
    finish(killed, log)
    return folder / "calm", folder / "killed", sum(hits)


def saved_weights(run):
    found = {}
    with h5py.File(run / "model.weights.h5") as file:
        file.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return found


def test_the_final_weights_are_those_of_an_undisturbed_run_bit_for_bit(runs):
    calm, killed, hits = runs
    expected, found = saved_weights(calm), saved_weights(killed)
    assert hits == KILLS
    assert expected.keys() == found.keys() and len(expected) > 20
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)


def test_no_step_is_in_the_curves_twice_and_none_is_missing(runs):
    calm, killed, _ = runs
    lines = [[line for line in metrics_of(run) if "train/loss" in line] for run in (calm, killed)]
    assert [line["step"] for line in lines[1]] == list(range(1, STEPS + 1))
    assert [line["train/loss"] for line in lines[1]] == [line["train/loss"] for line in lines[0]]
    assert [step for step, _ in read_events(killed / "tensorboard")["train/loss"]] == list(range(1, STEPS + 1))


def test_every_writer_of_tensorboard_has_the_steps_of_an_undisturbed_run(runs):
    calm, killed = (steps_in(run / "tensorboard") for run in runs[:2])
    assert killed == calm and calm["train/weights/embedding"] == list(range(10, STEPS + 1, 10))
    assert (
        calm["final/loss"] == [STEPS]
        and len(calm["final/_hparams_/session_start_info"]) == len(calm[RUN_GRAPH_NAME]) == 1
    )
