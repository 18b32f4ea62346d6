"""curves.png: what metrics.jsonl holds, thinned and drawn."""

import json

import numpy as np

from train.report import curves
from train.report.curves import read_curves, thinned

RECORDS = [
    {"step": 1, "time": 1.0, "train/loss": 4.0, "train/learning_rate": 0.1},
    {"step": 2, "time": 2.0, "train/loss": 3.0, "train/learning_rate": 0.2},
    {"step": 2, "time": 2.0, "validation/loss": 3.5, "validation/bleu": None, "validation/samples": "| a |"},
]


def write(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def test_every_number_is_read_with_its_step_and_nothing_else(tmp_path):
    write(tmp_path / "metrics.jsonl", RECORDS)
    with open(tmp_path / "metrics.jsonl", "a", encoding="utf-8") as file:
        file.write('{"step": 3, "train/lo')  # the line of a process that was killed
    found = read_curves(tmp_path / "metrics.jsonl")
    assert {name: points.tolist() for name, points in found.items()} == {
        "train/loss": [[1, 4], [2, 3]],
        "train/learning_rate": [[1, 0.1], [2, 0.2]],
        "validation/loss": [[2, 3.5]],
    }


def test_no_metrics_are_no_curves(tmp_path):
    assert read_curves(tmp_path / "none") == {}


def test_the_means_of_a_thinned_curve_are_those_of_the_points(monkeypatch):
    monkeypatch.setattr(curves, "MOST_POINTS", 3)
    points = np.array([[1, 10], [2, 20], [3, 30], [4, 50], [5, 7]], float)
    assert thinned(points).tolist() == [[1.5, 15], [3.5, 40], [5, 7]]
    assert thinned(points[:3]).tolist() == points[:3].tolist()
    assert thinned(points[:4]).tolist() == [[1.5, 15], [3.5, 40]]


def test_steps_that_a_killed_process_lost_are_left_out(tmp_path):
    write(tmp_path / "metrics.jsonl", RECORDS)
    found = read_curves(tmp_path / "metrics.jsonl", 1)
    assert set(found) < set(read_curves(tmp_path / "metrics.jsonl"))
    assert all((points[:, 0] <= 1).all() for points in found.values()) and len(found["train/loss"]) == 1


def test_the_rest_of_a_thinned_curve_is_one_mean():
    points = np.array([[step, 10.0 * step] for step in range(1, 9)])
    assert thinned(points, 3).tolist() == [[2, 20], [5, 50], [7.5, 75]]
