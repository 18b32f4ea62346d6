"""Optimizers to one loss: settings that a training takes, an order that can be stopped, and a table."""

import numpy as np
import pytest

from benchmarks.quality import optimizers
from benchmarks.quality.optimizers import OPTIMIZERS, RATES, Series, peak_rate, settings_of, table
from benchmarks.quality.rates_and_seeds import ended, order
from benchmarks.quality.variants_table import Training
from benchmarks.trials.outcome import write_outcome
from tests.support.commands import assert_one_sentence, invoke
from tests.support.places import ROOT
from tests.support.trials import outcome, with_text
from train.config.run import load_config
from train.record.opened_run import check_training
from train.step.optimizer import training_schedule

CONFIG = ROOT / "configs/paper/variants.toml"
SERIES = Series(CONFIG, ())


def training(name, rate=1.0, seed=1, losses=(4.0, 3.0, 2.0), series=SERIES):
    """A training whose validations after 100, 200 and 300 updates, of half a second, have these losses."""
    trial = series.trial(name, rate, seed)
    measured = {"losses": [[100.0 * (place + 1), loss] for place, loss in enumerate(losses)], "seconds_per_step": 0.5}
    config = load_config(trial.config, trial.settings).to_toml()
    return Training(name, rate, seed, outcome(20.0, 7.0, config=config)._replace(measures=measured))


@pytest.mark.parametrize("config", ["paper/variants.toml", "multi30k/tiny.toml", "software/en_de.toml"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_row_is_a_training_that_is_taken_at_its_usual_rate(name, config):
    series = Series(ROOT / "configs" / config, ())
    base, usual = load_config(series.config), OPTIMIZERS[name][1]
    for rate in RATES:
        found = load_config(series.config, series.trial(name, rate, 7).overrides)
        check_training(found)
        assert found.training.seed == 7
        assert peak_rate(found) == pytest.approx(rate * usual * peak_rate(base), rel=1e-3)


@pytest.mark.parametrize("name", ["adam", "lion", "schedule_free"])
def test_the_peak_rate_is_the_highest_of_all_updates(name):
    config = load_config(CONFIG, SERIES.trial(name, 0.5, 1).overrides)
    d_model = config.transformer_config(4000).d_model
    schedule = training_schedule(d_model, config.training)
    assert max(float(schedule(step)) for step in range(290, 320)) == pytest.approx(peak_rate(config), rel=1e-3)


def test_a_stop_after_any_training_leaves_rows_that_can_be_compared(tmp_path):
    series, done, names = SERIES._replace(config=with_text(CONFIG, tmp_path)), [], ["adam", "muon"]
    for trial in order(series.trial, names, RATES, 2, tmp_path):
        key = next(
            (name, rate, seed)
            for name in names
            for rate in RATES
            for seed in (1, 2)
            if series.trial(name, rate, seed) == trial
        )
        best = key[:2] in (("adam", 2.0), ("muon", 0.5))
        one = training(*key, losses=(4.0, 2.0 if best else 3.0), series=series)
        write_outcome(one.outcome, trial.name, tmp_path)
        done.append(key)
    assert done == [*((name, rate, 1) for rate in RATES for name in names), ("adam", 2.0, 2), ("muon", 0.5, 2)]
    assert sorted(one[:3] for one in ended(series.trial, OPTIMIZERS, RATES, 2, tmp_path)) == sorted(done)


def rows_of(text):
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {cells[0]: cells[1:] for cells in lines[1:]}


def test_the_table_has_updates_and_seconds_to_the_loss_with_which_adam_ends():
    found = [
        training("adam", losses=(4.0, 3.5, 3.0)),
        training("schedule_free", losses=(4.0, 3.0, 2.0)),
        training("schedule_free", 2.0, losses=(4.0, 3.5, 3.2)),
        training("schedule_free", seed=2, losses=(4.0, 3.2, 2.2)),
        training("lion", losses=(5.0, 4.0, 3.5)),
    ]
    rows = rows_of(table(found, lambda one: settings_of(SERIES, one), None).partition("\n\nValidation")[0])
    assert rows["schedule_free"][0] == "warmup" and rows["adam"][0] == "paper" and rows["lion"][0] == "cosine"
    assert rows["schedule_free"][2:7] == ["2", "2.100 (2.000 to 2.200)", "210", "105", "500"]
    assert rows["adam"][4:6] == ["300", "150"] and rows["lion"][4:6] == ["never", "never"]
    easy = rows_of(table(found, lambda one: settings_of(SERIES, one), 3.5).partition("\n\nValidation")[0])
    assert easy["adam"][4:6] == ["200", "100"] and easy["lion"][4] == "300"
    assert np.isfinite(float(rows["adam"][1]))


def test_an_optimizer_that_there_is_not_is_one_sentence(tmp_path):
    found = invoke(optimizers.app, CONFIG, "--only", "adan", "--results", tmp_path, "--folder", tmp_path)
    assert_one_sentence(found, "adan", "schedule_free")
