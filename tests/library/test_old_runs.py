"""A run folder of each kind that an earlier version wrote opens, and translates as that version recorded."""

import json

import pytest

from keras_transformer.doctor.finding import MISSING
from keras_transformer.doctor.folders import folder
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run
from keras_transformer.translation.translator import Translator
from tests.support.places import ROOT
from train.config.recorded import load_recorded
from train.loop.checkpoints import assign_weights, last_progress, read_weights

RUNS = sorted(path.parent for path in (ROOT / "tests/data/old_runs").glob("*/expected.json"))
TRAINED = [run for run in RUNS if RunFolder(run).config.exists()]
ROUNDING = 1e-4  # of a score, from one processor to another


def names(run):
    return run.name


def test_there_is_one_of_each_kind():
    assert list(map(names, RUNS)) == ["imported", "parsing", "recurrent", "transformer"]


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS, ids=names)
def test_it_translates_as_the_version_that_wrote_it(run):
    expected = json.loads((run / "expected.json").read_text(encoding="utf-8"))
    translations = Translator.load(run).translate([line["source"] for line in expected])
    assert [translation.text for translation in translations] == [line["output"] for line in expected]
    assert [translation.score for translation in translations] == pytest.approx(
        [line["score"] for line in expected], abs=ROUNDING
    )


@pytest.mark.parametrize("run", RUNS, ids=names)
def test_it_is_whole(run):
    assert [finding for finding in folder(run) if finding.state == MISSING] == []


@pytest.mark.parametrize("run", TRAINED, ids=names)
def test_its_configuration_is_read_without_a_key_that_is_unknown(run, caplog):
    config = load_recorded(run / "config.toml")
    assert config.training.steps == 600 and caplog.records == []


def test_its_checkpoint_is_of_its_model():
    run = RunFolder(ROOT / "tests/data/old_runs/recurrent")
    assert last_progress(run.checkpoints).step == 600
    model, _ = load_run(run.path)
    weights = read_weights(run.checkpoints / "step-00000600.npz")
    assert {weight.path for weight in model.weights} == set(weights)
    assign_weights(model, weights)
