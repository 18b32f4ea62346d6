"""What a trial came to: its curve, its tokens, and what is said of several rows."""

import json

import numpy as np
import pytest

from benchmarks.trials.outcome import bleu_over_time, target_tokens_in
from keras_transformer.runs.run_folder import RunFolder
from train.report.curves import read_curves


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
