"""What a trial came to: its curve, its tokens, and what is said of several rows."""

import json

import numpy as np
import pytest

from benchmarks.trials.outcome import bleu_over_time, commits_sentence, empty_sentence, target_tokens_in
from keras_transformer.runs.run_folder import RunFolder
from tests.support.trials import outcome
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


def test_empty_translations_are_counted():
    outcomes = {"a": outcome(30.0, 5.0, ["x y", "", " "]), "b": outcome(30.0, 5.0, ["x", "y", "z"])}
    assert empty_sentence(outcomes).startswith("Empty translations, of 3: a 2, b 0. ")
    assert empty_sentence({"b": outcomes["b"]}) == ""


def test_rows_of_several_commits_are_named():
    found = {name: outcome(30.0, 5.0) for name in ("base", "big", "mixed", "unknown")}
    assert commits_sentence(found) == commits_sentence({}) == ""
    found["mixed"] = found["mixed"]._replace(commits=["c0ffee", "0123456789abcdef"])
    found["unknown"] = found["unknown"]._replace(commits=[None])
    assert commits_sentence(found) == (
        "Not all rows were trained by the same code: base, big by c0ffee; mixed by c0ffee and 0123456; unknown by an "
        "unknown commit."
    )
