"""The last record of a finished run."""

import json

import pytest

from keras_transformer.runs.run_folder import RunFolder
from tests.support.events import read_events
from tests.support.runs import metrics_of
from tests.support.training import scores_of
from train.loop.metrics_file import keep_records
from train.loop.metrics_log import MetricsLog
from train.report.finish import record_final_scores


@pytest.fixture
def run(tmp_path):
    """The RunFolder of a run of three steps."""
    folder = RunFolder(tmp_path)
    metrics = MetricsLog(folder, 0)
    for step in (1, 2, 3):
        metrics.write(step, {"train/loss": 4.0 - step})
    metrics.close()
    return folder


def test_the_scores_are_recorded_at_the_last_step_beside_what_was_there(run):
    record_final_scores(run, None, 3, scores_of(bleu=30.0, chrf=50.0, exact=25.0), loss=1.5)
    record = metrics_of(run.path)[-1]
    assert record.pop("time") > 0
    assert record == {"step": 3, "final/bleu": 30.0, "final/chrf": 50.0, "final/exact": 25.0, "final/loss": 1.5}
    events = read_events(run.tensorboard)
    assert events["final/bleu"] == [(3, 30.0)] and events["train/loss"] == [(1, 3.0), (2, 2.0), (3, 1.0)]


@pytest.mark.parametrize("undefined", ["", "no reference has four tokens"])
def test_the_same_scores_once_more_change_nothing(run, undefined):
    record_final_scores(run, None, 3, scores_of(bleu=30.0, undefined=undefined), loss=1.5)
    before = run.metrics.read_bytes()
    record_final_scores(run, None, 3, scores_of(bleu=30.0, undefined=undefined), loss=1.5)
    assert run.metrics.read_bytes() == before
    assert ("final/bleu" in read_events(run.tensorboard)) == (not undefined)


def test_other_scores_take_the_place_of_the_old_ones(run):
    for bleu in (30.0, 31.0):
        record_final_scores(run, None, 3, scores_of(bleu=bleu), loss=1.5)
    assert read_events(run.tensorboard)["final/bleu"] == [(3, 31.0)]
    assert [record["final/bleu"] for record in metrics_of(run.path) if "final/bleu" in record] == [31.0]
    assert len(metrics_of(run.path)) == 4


def test_steps_that_the_run_does_not_have_any_more_are_discarded(run):
    record_final_scores(run, None, 2, scores_of(bleu=30.0), loss=1.5)  # the third step came after the last checkpoint
    with open(run.metrics, "a", encoding="utf-8") as file:
        file.write(json.dumps({"step": 3, "train/loss": 1.0}) + "\n")  # a process that was killed trained on
    record_final_scores(run, None, 2, scores_of(bleu=30.0), loss=1.5)
    assert [record["step"] for record in metrics_of(run.path)] == [1, 2, 2]


def test_the_last_record_has_the_scores_of_the_report(finished):
    folder = finished[1]
    (final,) = (line for line in metrics_of(folder) if "final/loss" in line)
    assert final == metrics_of(folder)[-1] and final["step"] == 5
    scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    bleu, *_, chrf, ter = scores["scores"]
    assert (scores["split"], scores["beam_size"], bleu["name"], chrf["name"]) == ("data.test_pairs", 4, "BLEU", "chrF")
    assert ter["name"] == "TER"
    assert bleu["value"] is None and "final/bleu" not in final  # a number is one word
    assert final["final/chrf"] == chrf["value"]
    assert (final["final/exact"], final["final/loss"]) == (scores["exact"], scores["validation_loss"])
    low, high = chrf["interval"]
    assert low <= chrf["value"] <= high
    assert read_events(folder / "tensorboard")["final/chrf"] == [(5, pytest.approx(chrf["value"]))]


def test_a_record_of_an_earlier_step_stays_whatever_it_has(run):
    with open(run.metrics, "a", encoding="utf-8") as file:
        file.write(json.dumps({"step": 3, "final/bleu": 1.0}) + "\n")
    kept = keep_records(run.metrics, 4, replaced={"final/bleu"})
    assert [record["step"] for record in kept] == [1, 2, 3, 3]
    assert [record["step"] for record in keep_records(run.metrics, 3, replaced={"final/bleu"})] == [1, 2, 3]
