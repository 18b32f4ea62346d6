"""Series of trainings: rows in the paper's proportions, what a trial keeps, and the tables."""

import dataclasses
import json
import pathlib
import signal

import numpy as np
import pytest
from PIL import Image

from benchmarks import ablation, ancestors, table3
from benchmarks.trials import training
from benchmarks.trials.ablation_table import table as ablation_table
from benchmarks.trials.ancestors_table import curve, draw
from benchmarks.trials.ancestors_table import table as ancestors_table
from benchmarks.trials.sizes import check_same_size
from benchmarks.trials.table3_rows import ROWS, overrides_of, paper_config
from benchmarks.trials.table3_table import table as table3_table
from benchmarks.trials.training import TRANSLATIONS, Outcome, Trial, outcome_of, selected, steps_in, trained
from benchmarks.worker import BenchmarkError
from keras_transformer.config import TABLE_3, base
from keras_transformer.errors import Interrupted
from keras_transformer.run_folder import RunFolder
from tests.support.commands import assert_one_sentence, invoke
from tests.support.places import ROOT
from tests.support.runs import write_config
from train.config import load_config
from train.evaluation.comparison import Run
from train.evaluation.cost import parameter_count

TABLE3_CONFIG = ROOT / "configs/multi30k_table3.toml"


def model_with(overrides, path=TABLE3_CONFIG, *more):
    config = load_config(path, [*overrides, *more])
    return config.transformer_config(config.tokenizer.vocab_size)


def outcome(name, bleu, perplexity, translations=("a b c d e",), overrides=()):
    score = {"name": "BLEU", "form": "raw text", "value": bleu, "interval": [bleu - 1, bleu + 1], "signature": "sig"}
    scores = {"scores": [score], "validation_perplexity": perplexity, "parameters": 1_000}
    trial = Trial(name, pathlib.Path("c.toml"), tuple(overrides))
    return Outcome(trial, Run(name, {}, {}, scores, minutes=2.0), list(translations))


# Table 3


def test_every_row_of_the_presets_and_base_and_big_are_rows_of_the_table():
    assert {row.name for row in ROWS} == {"base", "big", *TABLE_3}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_scaled_to_the_papers_own_base_is_the_papers_row(row):
    paper = ['model.preset="base"', *(f"model.{key}={getattr(base, key)}" for key in ("d_model", "d_ff", "num_heads"))]
    paper += ["model.encoder_layers=6", "model.decoder_layers=6"]
    found = model_with(paper, TABLE3_CONFIG, *overrides_of(row, base))
    theirs = paper_config(row).replace(vocab_size=found.vocab_size)
    shapes = ("d_model", "d_ff", "num_heads", "encoder_layers", "d_k", "d_v", "positions", "dropout", "label_smoothing")
    assert [getattr(found, name) for name in shapes] == [getattr(theirs, name) for name in shapes]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_scaled_row_changes_what_the_papers_row_changes_by_the_same_factor(row):
    own, theirs = model_with([]), paper_config(row)
    found = model_with(overrides_of(row, own))
    for name in ("d_model", "d_ff", "num_heads", "d_k", "d_v", "dropout", "label_smoothing", "encoder_layers"):
        factor = getattr(theirs, name) / getattr(base, name)
        assert getattr(found, name) == pytest.approx(getattr(own, name) * factor)
    assert found.positions == theirs.positions


def test_there_is_a_trial_per_row_and_base_is_the_configuration_itself():
    base_trial, *others = table3.trials_of(TABLE3_CONFIG, load_config(TABLE3_CONFIG))
    assert base_trial == Trial("base", TABLE3_CONFIG) and len(others) == len(TABLE_3) + 1
    for trial in others:
        assert load_config(trial.config, trial.overrides) != load_config(TABLE3_CONFIG)


def test_the_table_names_how_a_row_differs_and_leaves_out_what_was_not_trained():
    found = {"base": outcome("base", 30.0, 5.0), "C_d_ff_1024": outcome("C_d_ff_1024", 29.0, 5.5)}
    lines = table3_table(load_config(TABLE3_CONFIG), found, "python -m benchmarks.table3").splitlines()
    rows = {line.split(" | ")[0].removeprefix("| "): line.split(" | ") for line in lines if line.startswith("| ")}
    assert "2 of 20 rows" in lines[2]
    assert rows["base"][1:6] == ["3", "128", "512", "8", "16"]
    assert rows["(C) d_ff"][1:6] == ["", "", "256", "", ""] and rows["(C) d_ff"][8:10] == ["5.50", "29.00 ± 1.00"]
    assert rows["(C) d_ff"][12:14] == ["5.12", "25.4"]
    assert rows["C_d_ff_1024"][1:4] == ["-", "-", "-"] and rows["C_d_ff_1024"][4].startswith("-")
    assert "(A) h" not in rows


# ablations


def test_an_ablation_switches_off_each_technique_that_the_recipe_uses_and_no_other(tmp_path):
    path = write_config(tmp_path)
    recipe = load_config(path, ["training.r_drop=5.0", "training.dropout=0.2", "training.label_smoothing=0.0"])
    trials = ablation.trials_of(path, recipe)
    assert trials[0] == Trial("whole", path)
    off = {setting for trial in trials[1:] for setting in trial.overrides}
    assert {"training.r_drop=0.0", "training.dropout=0.0"} <= off
    assert not {setting for setting in off if "label_smoothing" in setting or "bpe_dropout" in setting}
    for trial in trials[1:]:
        load_config(path, trial.overrides)  # raises ConfigError for a change that is none


def test_an_ablation_compares_translations_in_pairs(tmp_path):
    recipe = load_config(write_config(tmp_path))
    references = [f"{number} is the number that is right here" for number in range(60)]
    pairs = [(None, reference) for reference in references]
    worse = [text if number % 3 else "something that is wrong" for number, text in enumerate(references)]
    outcomes = [
        outcome("whole", 90.0, 2.0, references),
        outcome("without_dropout", 60.0, 3.0, worse, ["training.dropout=0.0"]),
        outcome("same", 90.0, 2.0, references, ["training.r_drop=0.0"]),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmarks.trials.ablation_table.validation_pairs", lambda recipe: pairs)
        text = ablation_table(recipe, outcomes, "python -m benchmarks.ablation")
    rows = {line.split(" | ")[0]: line.split(" | ") for line in text.splitlines() if line.startswith("| ")}
    assert rows["| the whole recipe"][2:4] == ["", ""]
    worse, same = rows["| training.dropout=0.0"], rows["| training.r_drop=0.0"]
    assert float(worse[2]) < -10 and float(worse[3]) < 0.01
    assert same[2:4] == ["+0.00", "1.0000"]


# ancestors


def with_lengths(found, by_length, path):
    """The outcome with BLEU by length, and a run folder with 60 steps of half a second and two validations."""
    chrf = {"name": "chrF", "form": "raw text", "value": 50.0, "interval": None, "signature": "sig"}
    lengths = [{"words": words, "bleu": {"value": value}} for words, value in by_length.items()]
    found.run.scores["scores"].append(chrf)
    found.run.scores["by_length"] = lengths
    path.mkdir()
    steps = [{"step": step, "train/seconds_in_step": 0.5, "train/seconds_waiting": 0.0} for step in range(1, 61)]
    records = [*steps[:30], {"step": 30, "validation/bleu": 10.0}, *steps[30:], {"step": 60, "validation/bleu": 20.0}]
    RunFolder(path).metrics.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    curves = {"train/tokens_per_second": np.array([[1, 900.0], [2, 1_100.0]]), "train/loss": np.array([[60, 2.0]])}
    return found._replace(run=dataclasses.replace(found.run, name=str(path), curves=curves))


def test_the_ancestors_are_compared_by_length_and_over_time(tmp_path):
    outcomes = {
        "new": with_lengths(outcome("new", 30.0, 5.0), {"up to 10": 40.0, "11 and more": 20.0}, tmp_path / "new"),
        "old": with_lengths(outcome("old", 20.0, 9.0), {"up to 10": 30.0, "11 and more": None}, tmp_path / "old"),
    }
    text = ancestors_table(outcomes, 0.5, "python -m benchmarks.ancestors")
    rows = [
        line.strip("| ").split(" | ")
        for line in text.splitlines()
        if line.startswith("| new") or line.startswith("| old")
    ]
    assert rows[0] == ["new", "`c.toml`", "1,000", "60", "2.0", "1,000", "30.00 ± 1.00", "50.00"]
    assert rows[2:] == [["new", "40.0", "20.0"], ["old", "30.0", "n/a"]]
    assert curve(RunFolder(tmp_path / "new")) == ([0.25, 0.5], [10.0, 20.0])
    draw(outcomes, tmp_path / "ancestors.png")
    with Image.open(tmp_path / "ancestors.png") as picture:
        assert picture.width > 1_000 and len(picture.convert("RGB").getcolors(10**6)) > 3


def test_the_committed_configurations_of_the_ancestors_differ_in_the_model_and_its_optimizer_alone():
    configs = [load_config(ROOT / f"configs/multi30k_en_de_{name}.toml") for name in ancestors.LABELS]
    counts = [parameter_count(config.transformer_config(config.tokenizer.vocab_size)) for config in configs]
    check_same_size(dict(zip(ancestors.LABELS, counts, strict=True)))  # raises BenchmarkError if they are not
    for same in ("data", "tokenizer", "translation"):
        assert all(getattr(config, same) == getattr(configs[0], same) for config in configs)
    for same in ("tokens_per_batch", "row_lengths", "seed", "average_checkpoints", "checkpoint_every", "bpe_dropout"):
        assert len({getattr(config.training, same) for config in configs}) == 1


def test_models_of_unequal_size_are_not_compared():
    check_same_size({})
    check_same_size({"a": 1_000, "b": 1_050})
    with pytest.raises(BenchmarkError, match=r"a 1,000, b 1,060"):
        check_same_size({"a": 1_000, "b": 1_060})


# trials


@pytest.fixture
def commands(monkeypatch):
    """What trials would run, as lists of arguments; nothing runs. A training leaves scores, an evaluation a file."""
    ran = []

    def pretend(log, module, *arguments):
        ran.append([module, *arguments])
        if module == "train":
            settings = dict(arguments[index + 1].split("=", 1) for index, a in enumerate(arguments) if a == "--set")
            folder = RunFolder(json.loads(settings["run_folder"]))
            folder.path.mkdir(parents=True)
            overrides = [f"{key}={value}" for key, value in settings.items()]
            folder.config.write_text(load_config(arguments[0], overrides).to_toml(), encoding="utf-8")
            records = [{"step": 1, "train/seconds_in_step": 0.5, "train/seconds_waiting": 0.0}] * 60
            folder.metrics.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
            folder.scores.write_text(json.dumps({"scores": [], "parameters": 7, "validation_perplexity": 2.0}))
        else:
            pathlib.Path(arguments[arguments.index("--output") + 1]).write_text("eins\n\nzwei\n", encoding="utf-8")

    monkeypatch.setattr(training, "python", pretend)
    return ran


def test_a_trial_never_reads_the_test_set_and_is_done_once(commands, tmp_path):
    trial = Trial("small", TABLE3_CONFIG, ("translation.length_penalty=0.9", "translation.beam_size=5"))
    assert outcome_of(trial, tmp_path) is None
    found = trained(trial, tmp_path)
    (train, *settings), evaluate = commands
    assert train == "train" and settings.count("--set") == 4 and "data.test=[]" in settings
    assert load_config(RunFolder(tmp_path / "small").config).data.test == []
    assert evaluate[:2] == ["train.evaluate", str(tmp_path / "small")]
    assert evaluate[evaluate.index("--beam-size") + 1] == "5"
    assert evaluate[evaluate.index("--length-penalty") + 1] == "0.9"
    assert found.translations == ["eins", "", "zwei"] and (found.parameters, found.perplexity) == (7, 2.0)
    assert trained(trial, tmp_path).translations == found.translations and len(commands) == 2
    (tmp_path / "small" / TRANSLATIONS).unlink()
    trained(trial, tmp_path)
    assert [ran[0] for ran in commands] == ["train", "train.evaluate", "train.evaluate"]


def test_steps_of_a_time_follow_from_a_short_training(commands, tmp_path):
    trial = Trial("small", TABLE3_CONFIG, ("training.checkpoint_every=70", "training.dropout=0.3"))
    assert ancestors.timed(trial, 10.0, tmp_path).overrides == (*trial.overrides, "training.steps=1200")
    assert steps_in(trial, 5.0, tmp_path) == 5 * 60 / 0.5 and len(commands) == 1  # measured once
    calibration = load_config(RunFolder(tmp_path / "small_calibration").config).training
    assert (calibration.steps, calibration.dropout) == (training.CALIBRATION_STEPS, 0.3)
    assert steps_in(trial, 0.1, tmp_path) == 70  # at least to the first checkpoint


def test_only_takes_the_trials_that_it_names():
    trials = [Trial("a", pathlib.Path()), Trial("b", pathlib.Path())]
    assert selected(trials, None) == trials and selected(trials, "b") == trials[1:]
    with pytest.raises(BenchmarkError, match=r"'c'.*a, b"):
        selected(trials, "a,c")


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


@pytest.mark.slow
def test_a_command_that_fails_is_named_with_its_log(tmp_path, monkeypatch):
    name = module_that(tmp_path, monkeypatch, "print('There is no such file.'); raise SystemExit(1)")
    with pytest.raises(BenchmarkError, match=r"a_module x.*log\.txt: There is no such file\."):
        training.python(tmp_path / "log.txt", name, "x")


@pytest.mark.slow
def test_a_signal_to_stop_reaches_the_training_and_is_not_a_failure(tmp_path, monkeypatch):
    name, before = module_that(tmp_path, monkeypatch, STOPS_ITS_PARENT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted):
        training.python(tmp_path / "log.txt", name, "x")
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize("module", [table3, ablation])
def test_a_trial_that_there_is_not_is_one_sentence(module, tmp_path):
    options = ["--only", "no_such_row", "--folder", tmp_path / "runs", "--results", tmp_path]
    assert_one_sentence(
        invoke(module.app, TABLE3_CONFIG, *options), "no_such_row", "base" if module is table3 else "whole"
    )
