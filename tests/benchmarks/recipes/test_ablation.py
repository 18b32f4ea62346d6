"""Ablations: which techniques a recipe uses, and the table with its paired test."""

import math

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.recipes import ablation
from benchmarks.recipes.ablation_table import table
from benchmarks.trials.outcome import Trial
from keras_transformer.ground.errors import ConfigError
from tests.support.places import ROOT
from tests.support.runs import write_config
from tests.support.trials import outcome
from train.config.run import load_config


def test_an_ablation_switches_off_each_technique_that_the_recipe_uses_and_on_those_it_does_not(tmp_path):
    path = write_config(tmp_path)
    recipe = load_config(path, ["training.ema_decay=0.9", "training.dropout=0.2", "training.label_smoothing=0.0"])
    trials = ablation.trials_of(path, recipe)
    assert trials[0] == Trial("whole", path)
    settings = {trial.name: trial.overrides for trial in trials[1:]}
    assert settings["without_ema_decay"] == ("training.ema_decay=1e-09",) and "with_ema_decay" not in settings
    assert settings["without_dropout"] == ("training.dropout=0.0",)
    assert settings["with_bpe_dropout"] == ("training.bpe_dropout=0.1",) and "without_bpe_dropout" not in settings
    assert settings["with_cooldown_steps"] == (f"training.cooldown_steps={math.ceil(recipe.training.steps / 3)}",)
    assert not {name for name in settings if "label_smoothing" in name}
    for trial in trials[1:]:
        load_config(path, trial.overrides)  # raises ConfigError for a change that is none


def test_a_technique_of_another_kind_of_model_is_none_of_the_recipe(tmp_path):
    path = ROOT / "configs/paper/recurrent_dot.toml"
    names = {trial.name for trial in ablation.trials_of(path, load_config(path))}
    assert {"whole", "without_dropout", "without_clip_norm"} <= names and "without_norm" not in names


def test_an_ablation_compares_translations_in_pairs(tmp_path):
    recipe = load_config(write_config(tmp_path))
    references = [f"{number} is the number that is right here" for number in range(60)]
    pairs = [(None, reference) for reference in references]
    worse = [text if number % 3 else "something that is wrong" for number, text in enumerate(references)]
    outcomes = {
        "whole": outcome(90.0, 2.0, references),
        "without_dropout": outcome(60.0, 3.0, worse),
        "same": outcome(90.0, 2.0, references, machine="another, 2 cores")._replace(commits=["feed"]),
    }
    changes = {"whole": "", "without_dropout": "training.dropout=0.0", "same": "training.clip_norm=1e9"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmarks.recipes.ablation_table.validation_pairs", lambda recipe: pairs)
        text = table(recipe, outcomes, changes, "python -m benchmarks.recipes.ablation")
    rows = {line.split(" | ")[0]: line.split(" | ") for line in text.splitlines() if line.startswith("| ")}
    assert "on a machine, 2 cores (a) and another, 2 cores (b): " in text
    assert rows["| the whole recipe"][2:4] == ["", ""]
    assert "the whole recipe, training.dropout=0.0 by c0ffee; training.clip_norm=1e9 by feed." in text
    worse, same = rows["| training.dropout=0.0"], rows["| training.clip_norm=1e9"]
    assert float(worse[2]) < -10 and float(worse[3]) < 0.01
    assert same[2:4] == ["+0.00", "1.0000"] and "(b)" in same[-1] and "(a)" in worse[-1]


def test_a_shortened_recipe_keeps_its_proportions_and_its_rate(tmp_path):
    path = write_config(tmp_path)
    settings = ["training.steps=9000", "training.cooldown_steps=3000", "training.checkpoint_every=600"]
    recipe = load_config(path, [*settings, "training.dropout=0.2"])
    for steps in (9_000, 9_001):
        with pytest.raises(BenchmarkError, match=f"--steps is {steps:,}, and the recipe has 9,000"):
            ablation.shortened(recipe, steps)
    short = ablation.shortened(recipe, 3_000).training
    assert (short.steps, short.cooldown_steps) == (3_000, 1_000)
    assert (short.checkpoint_every, short.validate_every) == (200, round(recipe.training.validate_every / 3))
    scaled = {"steps": 9_000, "cooldown_steps": 3_000, "checkpoint_every": 600}
    scaled["validate_every"] = recipe.training.validate_every
    assert short.model_copy(update=scaled) == recipe.training  # the warm-up too, which decides the rate
    fewest = ablation.shortened(recipe, 1).training
    assert (fewest.checkpoint_every, fewest.cooldown_steps) == (1, 1)  # a recipe with a cool-down keeps one
    with pytest.raises(ConfigError, match="the recipe with 10 updates"):
        ablation.shortened(load_config(path, [*settings, "training.profile_steps=[20, 25]"]), 10)
