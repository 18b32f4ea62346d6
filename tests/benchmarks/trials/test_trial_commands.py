"""The commands that a trial runs in processes of their own: how they fail, and how they are stopped."""

import json
import signal

import numpy as np
import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.trials import training
from benchmarks.trials.outcome import bleu_over_time, target_tokens_in
from keras_transformer.ground.errors import Interrupted
from keras_transformer.runs.run_folder import RunFolder
from tests.support.processes import python
from train.report.curves import read_curves

STOPS_ITS_PARENT = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))
os.kill(os.getppid(), signal.SIGTERM)
time.sleep(60)
"""


def module_that(tmp_path, monkeypatch, body):
    (tmp_path / "a_module.py").write_text(body, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "a_module"


@pytest.mark.release
def test_a_command_that_fails_is_named_with_its_log(tmp_path, monkeypatch):
    name = module_that(tmp_path, monkeypatch, "print('There is no such file.'); raise SystemExit(1)")
    with pytest.raises(BenchmarkError, match=r"a_module x.*log\.txt: There is no such file\."):
        training.python(tmp_path / "log.txt", name, "x")


@pytest.mark.release
def test_a_command_that_the_system_ends_is_no_stop(tmp_path, monkeypatch):
    name = module_that(tmp_path, monkeypatch, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(BenchmarkError, match=r"was ended by SIGKILL \(.*memory.*log\.txt"):
        training.python(tmp_path / "log.txt", name, "x")


@pytest.mark.release
def test_a_signal_to_stop_reaches_the_training_and_is_not_a_failure(tmp_path, monkeypatch):
    name, before = module_that(tmp_path, monkeypatch, STOPS_ITS_PARENT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted):
        training.python(tmp_path / "log.txt", name, "x")
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.release
def test_their_help_does_not_wait_for_keras_and_tensorflow():
    names = "recipes.ablation", "paper.ancestors", "paper.table3", "quality.variants"
    modules = ", ".join(f"benchmarks.{name}" for name in names)
    code = f"import sys, {modules}; print({{'tensorflow', 'keras'}} & set(sys.modules))"
    assert python("-c", code).stdout == "set()\n"


def test_a_curve_is_over_the_minutes_of_steps(tmp_path):
    steps = [{"step": step, "train/seconds_in_step": 0.4, "train/seconds_waiting": 0.1} for step in range(1, 61)]
    lines = [*steps[:30], {"step": 30, "validation/bleu": 10.0}, *steps[30:], {"step": 60, "validation/bleu": 20.0}]
    folder = RunFolder(tmp_path)
    folder.metrics.write_text("".join(json.dumps(record) + "\n" for record in lines), encoding="utf-8")
    found = bleu_over_time(read_curves(folder.metrics))
    assert found == [[pytest.approx(0.25), 10.0], [pytest.approx(0.5), 20.0]]


def test_target_tokens_are_those_of_all_steps_with_the_wait_for_their_batches():
    steps = np.arange(1, 4)
    metrics = {
        "train/tokens_per_second": [100, 50, 200],
        "train/seconds_in_step": [0.5, 1, 1],
        "train/seconds_waiting": [0.5, 1, 0],
    }
    curves = {name: np.stack([steps, values], axis=1) for name, values in metrics.items()}
    assert target_tokens_in(curves) == 100 + 100 + 200
