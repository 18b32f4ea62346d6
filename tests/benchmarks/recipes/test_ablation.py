"""Ablations: which techniques a recipe uses, and the table with its paired test."""

import math
import tomllib

import keras
import numpy as np
import pytest
import tomli_w

from benchmarks.errors import BenchmarkError
from benchmarks.recipes import ablation
from benchmarks.recipes.ablation_table import table
from benchmarks.trials.outcome import Trial
from keras_transformer.ground.errors import ConfigError
from tests.support.models import as_numpy
from tests.support.places import ROOT
from tests.support.runs import write_config
from tests.support.trials import outcome
from train.config.run import load_config
from train.config.training import check_idle_keys
from train.step.optimizer import training_optimizer


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


ON = ["training.ema_decay=0.9", "training.keep_best=true", "training.clip_norm=1.0"]
WITHOUT = {"without_ema_decay", "without_keep_best", "without_clip_norm"}


def test_a_technique_that_is_on_if_its_key_is_set_is_switched_off_too(tmp_path):
    path = write_config(tmp_path)
    trials = {trial.name: trial for trial in ablation.trials_of(path, load_config(path, ON))}
    assert WITHOUT <= trials.keys()
    assert not WITHOUT & {trial.name for trial in ablation.trials_of(path, load_config(path))}
    off = [setting for name in WITHOUT for setting in trials[name].overrides]
    assert not load_config(path, [*ON, *off]).training.keep_best

    def trained(settings):
        optimizer, weights = training_optimizer(16, load_config(path, settings).training), keras.Variable([1.0, 2.0])
        for gradient in ([3.0, 4.0], [-3e3, 1e3]):
            optimizer.apply([keras.ops.array(gradient)], [weights])
        return as_numpy(weights), as_numpy(optimizer.averages[0] if optimizer.ema_decay else weights)

    plain, on, switched_off = trained([]), trained(ON), trained([*ON, *off])
    np.testing.assert_allclose(switched_off, plain, rtol=1e-6)  # weights, and their moving average
    assert np.abs(on[0] - plain[0]).max() > 1e-4 < np.abs(on[0] - on[1]).max()


@pytest.mark.parametrize(
    ("metric", "patience", "left"), [("chrf", None, "bleu"), ("chrf", 3, "chrf"), ("bleu", None, "bleu")]
)
def test_without_the_best_checkpoint_no_metric_is_left_over_which_training_would_refuse(
    tmp_path, metric, patience, left
):
    recipe = [f'training.best_metric="{metric}"', "training.keep_best=true"]
    recipe += [f"training.patience={patience}"] * (patience is not None)
    path = write_config(tmp_path)
    (trial,) = (one for one in ablation.trials_of(path, load_config(path, recipe)) if one.name == "without_keep_best")
    found = load_config(path, [*recipe, *trial.overrides]).training
    assert (found.keep_best, found.best_metric) == (False, left) and trial.same_updates_as == "whole"
    check_idle_keys(found)
    assert len(trial.overrides) == (2 if metric != left else 1)


def test_a_technique_of_another_kind_of_model_is_none_of_the_recipe(tmp_path):
    path = ROOT / "configs/paper/recurrent_dot.toml"
    names = {trial.name for trial in ablation.trials_of(path, load_config(path))}
    assert {"whole", "without_dropout", "without_clip_norm"} <= names and "without_norm" not in names


def test_each_further_text_of_the_recipe_is_left_out_once(tmp_path):
    path = write_config(tmp_path)
    texts = [["a.en", "a.de"], {"files": ["a.en", "made.de"], "tag": "<M>"}, 'more  "quoted".tsv']
    source = {"source": "files", "train": texts, "validation": ["v.tsv"]}
    values = tomllib.loads(path.read_text(encoding="utf-8")) | {"data": source}
    path.write_text(tomli_w.dumps(values), encoding="utf-8")
    recipe = load_config(path)
    without = [trial for trial in ablation.trials_of(path, recipe) if trial.name.startswith("without_train")]
    assert [trial.change for trial in without] == ["without a.en and made.de (tag <M>)", f"without {texts[2]}"]
    first, second, third = recipe.data.train
    assert [load_config(path, trial.settings).data.train for trial in without] == [[first, third], [first, second]]
    assert {trial.name for trial in without} == {"without_train_2", "without_train_3"}


def test_a_text_with_tags_alone_is_left_out_as_well(tmp_path):
    path = write_config(tmp_path)
    texts = [{"files": [f"{'long ' * 30}{name}.en", f"{name}.de"], "tag": f"<2{name}>"} for name in "abc"]
    source = {"source": "files", "train": texts, "validation": ["v.tsv"]}
    values = tomllib.loads(path.read_text(encoding="utf-8")) | {"data": source}
    path.write_text(tomli_w.dumps(values), encoding="utf-8")
    recipe = load_config(path)
    without = [trial for trial in ablation.trials_of(path, recipe) if trial.name.startswith("without_train")]
    first, second, third = recipe.data.train
    assert [load_config(path, trial.settings).data.train for trial in without] == [[first, third], [first, second]]


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


def test_a_shortened_recipe_asks_for_no_more_keys_than_the_recipe(tmp_path):
    """A tokenizer that is given has a size of its own: the default is not to be asked of it."""
    path = tmp_path / "given.toml"
    text = 'run_folder = "runs/a"\ntokenizer = {model = "t.model"}\n'
    text += '[data]\nsource = "files"\ntrain = ["a.tsv"]\nvalidation = ["b.tsv"]\n'
    text += 'source_language = "en"\ntarget_language = "de"\n'
    path.write_text(text, encoding="utf-8")
    (tmp_path / "short.toml").write_text(ablation.toml_of(ablation.shortened(load_config(path), 7)), encoding="utf-8")
    short = load_config(tmp_path / "short.toml")
    assert short.tokenizer.model_fields_set == {"model"} and short.training.steps == 7
    assert short.training.model_fields_set == {"steps", "cooldown_steps", "checkpoint_every", "validate_every"}
