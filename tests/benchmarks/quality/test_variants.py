"""Variants of the Transformer: one size, an order that can be stopped, and a table of means over seeds."""

import json

import numpy as np
import pytest
from PIL import Image

from benchmarks.quality import variants
from benchmarks.quality.optimizers import peak_rate
from benchmarks.quality.rates_and_seeds import of_length
from benchmarks.quality.variants import RATES, VARIANTS, Series, measures, model_of, parameters_of, rows, width
from benchmarks.quality.variants_table import OTHERS, Training, best_rate, draw, table, updates_to
from benchmarks.trials.outcome import write_outcome
from keras_transformer.config import modern
from tests.support.commands import assert_one_sentence, invoke
from tests.support.places import ROOT
from tests.support.runs import random_run
from tests.support.trials import outcome, with_text
from train.config.run import load_config
from train.cost.cost import parameter_count

CONFIG = ROOT / "configs/paper/variants.toml"
SERIES = Series(CONFIG, (), 3)


def bleu(value):
    return {"value": value, "interval": [value - 1, value + 1], "signature": "sig", "empty": 1}


def training(name, rate=1.0, seed=1, losses=(4.0, 3.0, 2.0), score=20.0, trial=None):
    """A training whose validations after 100, 200 and 300 updates have these losses."""
    trial = trial or SERIES.trial(name, rate, seed)
    curve = [[100.0 * (place + 1), loss] for place, loss in enumerate(losses)]
    measured = {"losses": curve, "seconds_per_step": 0.5, "bleu": {"1": bleu(score), "2": bleu(9.0), "4": bleu(3.0)}}
    config = load_config(trial.config, trial.settings).to_toml()
    return Training(name, rate, seed, outcome(score + 1, 7.0, config=config)._replace(measures=measured))


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_has_as_many_parameters_as_the_paper_and_d_ff_is_the_best_multiple_of_8(name):
    base, settings = parameter_count(model_of(CONFIG, ())), VARIANTS[name]
    d_ff = width(CONFIG, settings)
    found = {
        change: abs(parameter_count(model_of(CONFIG, settings).replace(d_ff=d_ff + change)) - base)
        for change in (-8, 0, 8)
    }
    assert d_ff % 8 == 0 and min(found, key=found.get) == 0 and found[0] < 0.02 * base
    assert parameters_of(SERIES.trial(name, 1.0, 1)) - base in (found[0], -found[0])


def test_the_paper_is_the_configuration_and_modern_is_the_preset():
    assert width(CONFIG, VARIANTS["paper"]) == model_of(CONFIG, ()).d_ff and model_of(CONFIG, ()).norm == "post"
    own, fields = model_of(CONFIG, VARIANTS["modern"]), ("norm", "norm_kind", "activation", "positions", "scale_scores")
    assert [getattr(own, name) for name in fields] == [getattr(modern, name) for name in fields]


def test_a_stop_after_any_training_leaves_rows_that_can_be_compared(tmp_path):
    """All variants at one rate, then at the others, and then seed by seed at the rate that was best for each."""
    series, done = SERIES._replace(config=with_text(CONFIG, tmp_path)), []
    for trial in series.order(["pre", "modern"], tmp_path):
        name, rate, seed = trial.name.split("_")[0], float(trial.name.split("_")[2]), int(trial.name.split("_")[4])
        good = (name, rate) in (("pre", 0.5), ("modern", 1.0))
        one = training(name, rate, seed, losses=(4.0, 2.0 if good else 3.0), trial=trial)
        write_outcome(one.outcome, trial.name, tmp_path)
        done.append((name, rate, seed))
    assert done[: 2 * len(RATES)] == [(name, rate, 1) for rate in RATES for name in ("pre", "modern")]
    assert done[2 * len(RATES) :] == [
        (name, rate, seed) for seed in (2, 3) for name, rate in (("pre", 0.5), ("modern", 1.0))
    ]
    assert sorted(one[:3] for one in series.trainings(tmp_path)) == sorted(done)


def test_the_rate_of_a_variant_is_chosen_by_its_first_seed_alone():
    found = [training("pre", 1.0, 1, (2.5,)), training("pre", 0.5, 1, (2.4,)), training("pre", 1.0, 2, (1.0,))]
    assert best_rate(found, "pre") == 0.5 and best_rate(found[::2], "pre") == 1.0


def test_fewer_updates_have_warm_up_cool_down_and_validations_in_proportion():
    base = load_config(CONFIG)
    found = load_config(CONFIG, of_length(base, base.training.steps // 10)).training
    for name in ("steps", "warmup_steps", "cooldown_steps", "checkpoint_every", "validate_every"):
        assert getattr(found, name) == getattr(base.training, name) // 10
    assert load_config(CONFIG, of_length(base, 1)).training.validate_every == 1


def test_the_updates_to_a_loss_are_between_validations_on_a_straight_line():
    losses = np.array([[100.0, 4.0], [200.0, 3.0], [300.0, 2.0]])
    assert [updates_to(loss, losses) for loss in (5.0, 3.0, 2.25, 2.0)] == [100, 200, 275, 300]
    assert updates_to(1.9, losses) == np.inf and updates_to(4.0, losses[:1]) == 100
    assert updates_to(3.5, np.array([[100.0, 4.0], [200.0, 4.5], [300.0, 2.5]])) == 250


def test_the_table_has_means_over_seeds_and_when_the_papers_last_loss_is_reached():
    found = [
        training("paper", losses=(4.0, 3.5, 3.0)),
        training("pre", losses=(4.0, 3.0, 2.0), score=20.0),
        training("pre", 0.5, losses=(4.0, 3.5, 3.2)),
        training("pre", seed=2, losses=(4.0, 3.2, 2.2), score=21.0),
        training("alibi", losses=(5.0, 4.0, 3.5)),
    ]
    lines = table(load_config(CONFIG), found, "the command").splitlines()
    rows = {line.split(" | ")[0].removeprefix("| "): line.strip("| ").split(" | ")[1:] for line in lines[6:10]}
    assert rows["pre"] == [
        *("512", "1,000", "1", "2", "2.100 (2.000 to 2.200)", "21.50 ± 1.00 (21.00 to 22.00)"),
        *("20.50 ± 1.00 (20.00 to 21.00)", "9.00 ± 1.00 (9.00 to 9.00)", "3.00 ± 1.00 (3.00 to 3.00)"),
        *("500", "210", "315,000"),  # updates of 1,500 tokens
    ]
    assert rows["paper"][-2:] == ["300", "450,000"] and rows["alibi"][-2:] == ["never", "never"]
    assert "| pre | 2.000 | 3.200 |" in lines and "| paper | 3.000 |  |" in lines
    assert "The loss of the last two columns is 3.000." in lines and "5 trainings" in lines[2]
    assert any("paper 1, pre 2, alibi 1" in line for line in lines)


def test_rows_with_another_optimizer_have_a_table_of_their_own():
    found = [
        training("paper", losses=(4.0, 3.5, 3.0)),
        training("pre"),
        training("pre_with_muon", losses=(3.0, 2.0, 1.5)),
    ]
    first, second = table(load_config(CONFIG), found, "the command").split("## With Muon")
    assert "| pre | 2.000 |" in first and "| pre | 1.500 |" in second and "| paper | 3.000 |" not in second
    assert "| pre | 512 | 1,000 | 1 | 1 | 1.500 |" in second and "| 100 | 210" not in first


def test_rows_are_those_of_each_optimizer_that_is_asked_for():
    assert rows(["pre", "rms"], ["muon", "adam"]) == ["pre_with_muon", "rms_with_muon", "pre", "rms"]
    assert rows(["pre"]) == ["pre", "pre_with_muon"]


@pytest.mark.parametrize("name", ["paper", "pre", "learned"])
def test_a_row_differs_from_the_same_variant_with_adam_in_the_optimizer_and_its_schedule_alone(name):
    adam, muon = (load_config(CONFIG, SERIES.trial(row, 2.0, 3).overrides) for row in (name, f"{name}_with_muon"))
    assert (
        peak_rate(muon)
        == pytest.approx(peak_rate(adam), rel=1e-3)
        == pytest.approx(2 * peak_rate(load_config(CONFIG)), rel=1e-3)
    )
    assert (muon.training.optimizer, muon.training.schedule, muon.training.cooldown_steps) == ("muon", "cosine", 0)
    same = dict(adam.training), dict(muon.training)
    for values in same:
        for key in ("optimizer", "schedule", "cooldown_steps", "learning_rate", "learning_rate_factor"):
            del values[key]
    assert same[0] == same[1] and adam.model == muon.model and adam.data == muon.data


def test_each_rate_of_a_seed_has_its_own_machine_and_commit_in_the_table():
    first, second = training("pre", 1.0), training("pre", 0.5)
    second = second._replace(outcome=second.outcome._replace(machine="another", commits=["abcdef0123"]))
    text = table(load_config(CONFIG), [first, second], "the command")
    assert f"on {first.outcome.machine} (a) and another (b)" in text and "| 500 (a) |" in text
    assert "pre, rate 0.5, seed 1 by abcdef0" in text


def test_no_two_rows_have_one_colour():
    assert len(set(OTHERS)) == len(OTHERS) >= len(VARIANTS) - len(("paper", "pre", "modern"))


def test_the_picture_has_all_rows(tmp_path):
    rows = ("paper", "pre", "modern", "pre_with_muon")
    draw([training(name) for name in rows], tmp_path / "variants.png")
    with Image.open(tmp_path / "variants.png") as picture:
        assert picture.width > 1_000 and len(picture.convert("RGB").getcolors(10**6)) > 3


def test_a_run_is_measured_on_the_test_set_as_it_is_and_joined(tmp_path):
    run, config = random_run(tmp_path / "run"), with_text(CONFIG, tmp_path)
    lines = [{"step": step, "train/seconds_in_step": step, "train/seconds_waiting": 0.0} for step in (1, 2, 3)]
    lines.append({"step": 3, "validation/loss": 2.5})
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    for side in ("en", "de"):
        (tmp_path / f"text.{side}").write_text("a\nthe cat\ndogs\n", encoding="utf-8")
    found = measures(load_config(config, ["translation.beam_size=1"]), run)
    assert found["losses"] == [[3, 2.5]] and found["seconds_per_step"] == 2
    assert {*found["bleu"]} == {"1", "2", "4"} and all(0 <= score["empty"] <= 3 for score in found["bleu"].values())
    assert json.loads(json.dumps(found)) == found


def test_a_model_that_is_no_transformer_and_a_variant_that_there_is_not_are_one_sentence(tmp_path):
    path = ROOT / "configs/paper/recurrent_dot.toml"
    options = ["--folder", tmp_path / "runs", "--results", tmp_path]
    assert_one_sentence(invoke(variants.app, path, *options), path, "'recurrent'", 'model.kind = "transformer"')
    assert_one_sentence(invoke(variants.app, "--only", "no_such", *options), "no_such", "embedding_norm")
