"""How a run can be done again: its command, and the commit of the code."""

import subprocess

import pytest

from keras_transformer.run_folder import RunFolder
from train.evaluation.reproduction import commit, git, reproduction_lines

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


def test_there_is_none_outside_git_nor_inside_another_project(checkout, tmp_path, monkeypatch):
    (checkout / "inner").mkdir()
    assert commit(checkout / "inner") is None
    assert commit(tmp_path) is None or commit(tmp_path) != commit(checkout)
    monkeypatch.setenv("PATH", "")
    assert commit(checkout) is None


def test_the_command_takes_the_effective_configuration_to_a_new_run_folder(checkout, tmp_path):
    lines = reproduction_lines(RunFolder(tmp_path / "my run"), 7, checkout)
    assert lines[1] == f"git checkout {commit(checkout)}"
    assert lines[2] == f"python -m train '{tmp_path}/my run/config.toml' --set 'run_folder=runs/my run_again'"
    assert "seed, 7," in "".join(lines) and lines[-1] == f"Commit: {commit(checkout)}."


def test_without_a_commit_the_page_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    lines = reproduction_lines(RunFolder("runs/mine"), 1, tmp_path)
    assert lines[1].startswith("python -m train runs/mine/config.toml ") and "not known" in lines[-1]
