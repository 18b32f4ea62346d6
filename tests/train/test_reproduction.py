"""How a run can be done again: its command, the commits of the code, and what changed on the way."""

import dataclasses
import json
import subprocess

import numpy as np
import pytest

from keras_transformer.runs.run_folder import RunFolder
from train.config.training import TrainingConfig
from train.loop.progress import Progress
from train.record.history import Part, commit, git, history, record_part
from train.report.report import reproduction_lines

GIT = ("git", "-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")


@pytest.fixture
def checkout(tmp_path):
    """A git checkout of one file."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "file").write_text("one\n", encoding="utf-8")
    for arguments in (["init", "-q"], ["add", "file"], ["commit", "-q", "-m", "One"]):
        subprocess.run([*GIT, *arguments], cwd=folder, check=True)
    return folder


def test_the_commit_is_the_one_that_is_checked_out(checkout):
    assert commit(checkout) == git(checkout, "rev-parse", "HEAD") and len(commit(checkout)) == 40


def test_changes_are_named_and_new_files_are_none(checkout):
    (checkout / "runs").mkdir()
    (checkout / "runs/new").touch()
    assert " " not in commit(checkout)
    (checkout / "file").write_text("two\n", encoding="utf-8")
    assert commit(checkout) == git(checkout, "rev-parse", "HEAD") + " with uncommitted changes"


def test_the_command_takes_the_configuration_of_the_page_to_a_new_run_folder(tmp_path):
    folder = run_folder(tmp_path / "my run", [Part(0, "abc", {})])
    lines = reproduction_lines(folder, TrainingConfig(seed=7))
    assert lines[1:3] == [
        "git checkout abc",
        "keras-transformer train config.toml --set 'run_folder=runs/my run_again'",
    ]
    assert "Its seed, 7, decides the first weights" in "".join(lines) and lines[-1] == "Commit: abc."
    assert "bit for bit." in "".join(lines)  # nothing was changed on the way


def test_a_run_that_started_from_another_has_its_first_weights_from_there(tmp_path):
    text = "".join(reproduction_lines(RunFolder(tmp_path), TrainingConfig(start_from="runs/base")))
    assert "Its first weights are those of runs/base." in text and "decides the order of the text and dropout" in text


def test_a_run_whose_code_or_configuration_changed_says_where(tmp_path):
    parts = [Part(0, "abc", {}), Part(1_400, "abc", {"training.dropout": ("0.1", "0.2")}), Part(1_600, "def", {})]
    lines = reproduction_lines(run_folder(tmp_path, parts), TrainingConfig())
    assert lines[1] == "git checkout def" and "if the same is changed at the same steps" in "".join(lines)
    assert lines[-3:] == [
        "- from step 0 on, commit abc",
        "- from step 1,400 on, commit abc; `training.dropout` was 0.1 and is 0.2",
        "- from step 1,600 on, commit def",
    ]


# the history


def run_folder(path, parts, checkpoint=None):
    """A run folder with these parts in its history, and one checkpoint."""
    folder = RunFolder(path)
    folder.checkpoints.mkdir(parents=True, exist_ok=True)
    folder.history.write_text("".join(json.dumps(part._asdict()) + "\n" for part in parts), encoding="utf-8")
    if checkpoint:
        write_checkpoint(folder, Progress(checkpoint))
    return folder


def write_checkpoint(folder, progress):
    """A checkpoint without weights."""
    path = folder.checkpoints / f"step-{progress.step:08d}.npz"
    np.savez(path, progress=np.array(json.dumps(dataclasses.asdict(progress))))


def recorded(folder, *arguments, steps=100, patience=None):
    record_part(folder, TrainingConfig(steps=steps, patience=patience), *arguments)
    return [
        (part.step, part.commit, {key: tuple(ends) for key, ends in part.changes.items()}) for part in history(folder)
    ]


def test_a_run_that_has_stopped_early_gets_no_part(tmp_path):
    folder = run_folder(tmp_path, [Part(0, "abc", {})])
    progress = Progress(step=40, best_metric="bleu", best_step=20, validations_since_best=2)
    write_checkpoint(folder, progress)
    assert len(recorded(folder, "def", {}, patience=2)) == 1
    assert len(recorded(folder, "def", {}, patience=3)) == 2  # which trains on


def test_a_damaged_history_is_logged_and_begun_anew(tmp_path, caplog):
    folder = run_folder(tmp_path, [], checkpoint=40)
    folder.history.write_text("half", encoding="utf-8")
    assert recorded(folder, "abc", {}) == [(40, "abc", {})] and str(folder.history) in caplog.text
    assert folder.history.with_name("history.jsonl.damaged").read_text(encoding="utf-8") == "half"
