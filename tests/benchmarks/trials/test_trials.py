"""Series of trainings: what a trial trains and keeps, and what stops it."""

import json
import pathlib
import shutil

import numpy as np
import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.paper import table3
from benchmarks.recipes import ablation
from benchmarks.trials import training
from benchmarks.trials.outcome import Trial, read_outcome
from benchmarks.trials.training import TRANSLATIONS, train_all, trained
from keras_transformer.ground.errors import ConfigError
from keras_transformer.runs.run_folder import RunFolder
from tests.support.commands import assert_one_sentence, invoke
from tests.support.places import ROOT
from tests.support.runs import write_config
from tests.support.trials import forget, with_text
from train.config.run import load_config
from train.data.corpus import CorpusError

TIMES = ("train/tokens_per_second", "train/seconds_in_step")
TABLE3_CONFIG = ROOT / "configs/paper/table3.toml"


@pytest.fixture
def commands(monkeypatch):
    """What trials would run, as lists of arguments; nothing runs. A training leaves scores, an evaluation a file."""
    ran = []

    def pretend(log, module, *arguments):
        ran.append([module, *arguments])
        if module == "train":
            settings = dict(arguments[index + 1].split("=", 1) for index, a in enumerate(arguments) if a == "--set")
            folder = RunFolder(json.loads(settings["run_folder"]))
            folder.path.mkdir(parents=True, exist_ok=True)
            overrides = [f"{key}={value}" for key, value in settings.items()]
            config = load_config(arguments[0], overrides)
            if config.effective_tokenizer.model:  # which has a size of its own
                config = config.with_tokenizer(500, "nfc")
            folder.config.write_text(config.to_toml(), encoding="utf-8")
            lines = [{"step": 1, **dict.fromkeys(TIMES, 0.5), "train/seconds_waiting": 0.0}] * 60
            folder.metrics.write_text("".join(json.dumps(record) + "\n" for record in lines), encoding="utf-8")
            about = {"split": "data.test", "sentences": 1, "exact": 0.0, "parameters": 7, "validation_perplexity": 2.0}
            folder.scores.write_text(json.dumps({"scores": [], **about}))
        else:
            pathlib.Path(arguments[arguments.index("--output") + 1]).write_text("eins\n\nzwei\n", encoding="utf-8")

    monkeypatch.setattr(training, "python", pretend)
    return ran


def test_a_trial_never_reads_the_test_set_and_is_done_once(commands, tmp_path):
    search = ("translation.length_penalty=0.9", "translation.beam_size=5", "translation.extra_length=10")
    search += ("translation.coverage_penalty=0.25", "translation.length_normalization=tokens")
    trial = Trial("small", TABLE3_CONFIG, search)
    runs, kept = tmp_path / "runs", tmp_path / "kept"
    assert read_outcome(trial, kept) is None
    found = trained(trial, runs, kept)
    (train, *settings), evaluate = commands
    assert train == "train" and settings.count("--set") == 7 and "data.test=[]" in settings
    assert load_config(RunFolder(runs / "small").config).data.test == []
    assert evaluate[:2] == ["train.evaluate", str(runs / "small")]
    words = dict(zip(evaluate[2::2], evaluate[3::2], strict=True))
    assert (words["--beam-size"], words["--length-penalty"], words["--extra-length"]) == ("5", "0.9", "10")
    assert (words["--coverage-penalty"], words["--length-normalization"]) == ("0.25", "tokens")
    assert found.train_seconds == 60 * 0.5
    assert found.translations == ["eins", "", "zwei"] and (found.parameters, found.perplexity) == (7, 2.0)
    forget("small", kept)
    assert trained(trial, runs, kept) == found and len(commands) == 2
    forget("small", kept)
    (runs / "small" / TRANSLATIONS).unlink()
    measured = trained(trial, runs, kept, lambda run: {"name": run.name}).measures
    assert measured == read_outcome(trial, kept).measures == {"name": "small"}
    assert [ran[0] for ran in commands] == ["train", "train.evaluate", "train.evaluate"]


def test_a_run_with_other_settings_is_not_taken_for_the_trial(commands, tmp_path):
    runs, kept, config = tmp_path / "runs", tmp_path / "kept", with_text(TABLE3_CONFIG, tmp_path)
    old, new = (Trial("small", config, (f"training.steps={steps}",)) for steps in (1000, 2000))
    trained(old, runs, kept)
    with pytest.raises(
        BenchmarkError, match=r"The row small of .* is of .*: training\.steps was 1000 and is 2000\. .*--results"
    ):
        read_outcome(new, kept)
    forget("small", kept)
    with pytest.raises(BenchmarkError, match=r"small is .*: training\.steps was 1000 and is 2000\. Remove .*--folder"):
        trained(new, runs, kept)
    with pytest.raises(BenchmarkError, match="training.steps was 1000 and is 2000"):  # before the other one is trained
        train_all([Trial("other", config), new], None, runs, kept)
    assert len(commands) == 2
    same = Trial("small", config, ("training.steps=1000", 'run_folder="elsewhere"', "model.d_model=128"))
    assert trained(same, runs, kept).parameters == 7 and len(commands) == 2  # the same in other words
    chosen = same._replace(overrides=(*same.overrides, 'training.precision="auto"'))
    assert trained(chosen, runs, kept).parameters == 7 and len(commands) == 2  # of which config.toml has what was taken


def test_what_training_would_refuse_is_refused_before_the_first_trial(commands, tmp_path):
    """And not after hours of the trials before it."""
    config = with_text(TABLE3_CONFIG, tmp_path)
    for wrong, error in (
        ('training.best_metric="chrf"', ConfigError),
        ("training.learning_rate=0.5", ConfigError),
        (f'training.start_from="{tmp_path}/none"', ConfigError),
        ("data.shards=2", CorpusError),
    ):
        trial = Trial("row", config, (wrong,))
        with pytest.raises(error):
            train_all([Trial("whole", config), trial], None, tmp_path / "runs", tmp_path / "kept")
        assert commands == []


def of_selection(tmp_path):
    """A trial of four steps, and the same without its average."""
    config = with_text(write_config(tmp_path), tmp_path)
    average = ("training.steps=4", "training.checkpoint_every=2", "training.average_checkpoints=2")
    last = (*average, "training.average_checkpoints=1")
    return Trial("whole", config, average), Trial("last", config, last, same_updates_as="whole")


def test_a_trial_with_the_same_updates_begins_after_them_if_they_are_there(commands, tmp_path):
    whole, last = of_selection(tmp_path)
    trained(whole, tmp_path / "runs", tmp_path / "kept")
    (tmp_path / "runs/whole/checkpoints").mkdir()
    np.savez(tmp_path / "runs/whole/checkpoints/step-00000004.npz", progress=json.dumps({"seconds": 60}))
    trained(last, tmp_path / "runs", tmp_path / "kept")
    assert (tmp_path / "runs/last/checkpoints/step-00000004.npz").exists()
    assert [ran[0] for ran in commands] == ["train", "train.evaluate"] * 2
    shutil.rmtree(tmp_path / "runs")
    forget("last", tmp_path / "kept")
    trained(last, tmp_path / "runs", tmp_path / "kept")
    assert not (tmp_path / "runs/last/checkpoints").exists()


@pytest.mark.parametrize("module", [table3, ablation])
def test_a_trial_that_there_is_not_is_one_sentence(module, tmp_path):
    options = ["--only", "no_such_row", "--folder", tmp_path / "runs", "--results", tmp_path]
    assert_one_sentence(
        invoke(module.app, TABLE3_CONFIG, *options), "no_such_row", "base" if module is table3 else "whole"
    )
