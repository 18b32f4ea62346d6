"""Numbered versions in one folder: only complete ones are found, and an unfinished one leaves nothing."""

import contextlib
import os

import psutil
import pytest

from export.versions import ExportError, make_folder, publish, refuse_existing, refuse_version, unfinished_version
from keras_transformer.runs.versions import (
    HIGHEST,
    SAVED_MODEL,
    find_export,
    find_version,
    is_number,
    numbered_versions,
)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_only_a_complete_version_is_found(tmp_path):
    (tmp_path / "7").mkdir()
    (tmp_path / "notes").mkdir()
    with unfinished_version(tmp_path) as unfinished:
        (unfinished / "saved_model.pb").touch()
        assert not unfinished.name.isdigit()
        with pytest.raises(ExportError, match="no exported version"):
            find_version(tmp_path)
        assert publish(unfinished) == tmp_path / "8"
    assert find_version(tmp_path) == find_version(tmp_path / "8") == tmp_path / "8"
    assert names_in(tmp_path) == ["7", "8", "notes"]


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("model.json", "is a run folder, not an export: `keras-transformer export"),
        ("litert.json", "a LiteRT model alone"),
    ],
)
def test_a_folder_of_another_kind_is_told_so(tmp_path, file, sentence):
    (tmp_path / file).touch()
    with pytest.raises(ExportError, match=f"{tmp_path} is .*{sentence.removeprefix('is ')}"):
        find_version(tmp_path)


@pytest.mark.parametrize("find", [find_version, find_export])
def test_a_path_without_an_export_is_told_so(find, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    reasons = {"file": "is a file", "none": "does not exist", "empty": "holds no exported version"}
    for name, reason in reasons.items():
        with pytest.raises(ExportError, match=f"{tmp_path / name} {reason}"):
            find(tmp_path / name)


def test_a_litert_model_is_an_export_without_versions(tmp_path):
    (tmp_path / "litert.json").touch()
    assert find_export(tmp_path) == tmp_path


def test_two_exports_at_the_same_time_get_two_numbers(tmp_path, monkeypatch):
    with unfinished_version(tmp_path) as one, unfinished_version(tmp_path) as other:
        (one / "saved_model.pb").touch()
        assert publish(one) == tmp_path / "1"
        monkeypatch.setattr("export.versions.version_numbers", lambda folder: [])  # as it was when the other one looked
        assert publish(other) == tmp_path / "2"


def test_ten_is_newer_than_nine(tmp_path):
    for number in (9, 10):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "saved_model.pb").touch()
    assert find_version(tmp_path).name == find_export(tmp_path).name == find_export(tmp_path / "10").name == "10"


def test_an_interrupted_export_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), unfinished_version(tmp_path / "a" / "b") as unfinished:
        (unfinished / "half").touch()
        raise KeyboardInterrupt
    assert names_in(tmp_path) == []


def test_what_a_killed_export_left_is_removed_and_what_another_one_is_writing_is_not(tmp_path, caplog):
    abandoned = tmp_path / ".unfinished-1"
    abandoned.mkdir()
    (abandoned / "half").touch()
    os.utime(abandoned, (0, 0))
    with unfinished_version(tmp_path) as one, unfinished_version(tmp_path) as other:
        os.utime(one, (0, 0))
        with unfinished_version(tmp_path):
            assert one.is_dir() and other.is_dir()
        assert names_in(tmp_path) == sorted([one.name, other.name])
        (one / "saved_model.pb").touch()
        assert publish(one) == tmp_path / "1"
    assert names_in(tmp_path) == ["1"]
    assert ".unfinished-1" in caplog.text


def test_what_is_younger_than_a_minute_may_be_about_to_be_locked_and_stays(tmp_path):
    unlocked = tmp_path / ".unfinished-1"
    unlocked.mkdir()
    with unfinished_version(tmp_path) as own:
        assert names_in(tmp_path) == sorted([unlocked.name, own.name])
    assert names_in(tmp_path) == [unlocked.name]


def test_no_file_stays_open(tmp_path):
    abandoned, process = tmp_path / ".unfinished-1", psutil.Process()
    before = process.num_fds()
    for _ in range(3):
        abandoned.mkdir()
        os.utime(abandoned, (0, 0))
        with unfinished_version(tmp_path):
            assert not abandoned.exists()
    assert process.num_fds() == before


def test_without_locks_nothing_of_another_export_is_removed(tmp_path, monkeypatch):
    def no_locks(descriptor, operation):
        raise OSError("Function not implemented")

    monkeypatch.setattr("fcntl.flock", no_locks)
    with unfinished_version(tmp_path) as one:
        os.utime(one, (0, 0))
        with unfinished_version(tmp_path) as other:
            assert names_in(tmp_path) == sorted([one.name, other.name])


def test_a_version_is_no_folder_for_versions(tmp_path):
    refuse_version(tmp_path)
    refuse_version(tmp_path / "none")
    (tmp_path / SAVED_MODEL).touch()
    with pytest.raises(ExportError, match=f"{tmp_path} is a version itself: name the folder above it"):
        refuse_version(tmp_path)


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda path: None, None),
        (lambda path: path.mkdir(), None),
        (lambda path: path.touch(), "exists already"),
        (lambda path: path.symlink_to("nowhere"), "exists already"),
        (lambda path: (path / "file").parent.mkdir() or (path / "file").touch(), "exists already"),
    ],
)
@pytest.mark.parametrize("is_mounted", [False, True])
def test_only_what_is_not_there_or_empty_becomes_an_export(make, part, is_mounted, tmp_path, monkeypatch):
    make(tmp_path / "new")
    monkeypatch.setattr("os.path.ismount", lambda path: is_mounted)
    part = "a file system is mounted" if is_mounted else part
    with pytest.raises(ExportError, match=part) if part else contextlib.nullcontext():
        refuse_existing(tmp_path / "new")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("file", "{} is not a folder, so nothing can be exported into it."),
        ("file/inside", "{} is not a folder, so nothing can be exported into it."),
        ("x" * 300, "Nothing can be exported into {}: File name too long."),
    ],
)
def test_a_folder_that_cannot_be_made_is_named_with_the_reason(name, sentence, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ExportError) as error:
        make_folder(tmp_path / name / "1")
    assert str(error.value) == sentence.format(tmp_path / name)


@pytest.mark.parametrize("names", [["7", "0007"], ["0007", "7"]])
def test_of_two_names_of_a_number_the_plain_one_is_the_version(tmp_path, names):
    for name in names:
        (tmp_path / name).mkdir()
    assert numbered_versions(tmp_path) == {7: tmp_path / "7"}


def test_a_version_is_a_number_of_ascii_digits():
    names = ["3", "007", "0", "\u0663", "\u00b2", "-1", "1.0", "", str(HIGHEST), str(HIGHEST + 1)]
    assert [name for name in names if is_number(name)] == ["3", "007", "0", str(HIGHEST)]


def test_a_link_in_the_place_of_an_abandoned_version_is_not_followed(tmp_path, caplog):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "mine").touch()
    (tmp_path / "versions").mkdir()
    (tmp_path / "versions" / ".unfinished-1").symlink_to(tmp_path / "elsewhere")
    os.utime(tmp_path / "elsewhere", (0, 0))
    with unfinished_version(tmp_path / "versions"):
        pass
    assert names_in(tmp_path / "elsewhere") == ["mine"] and names_in(tmp_path / "versions") == [".unfinished-1"]
    assert "removing" not in caplog.text


def test_a_version_that_cannot_be_renamed_is_not_tried_for_ever(tmp_path):
    with pytest.raises(FileNotFoundError):
        publish(tmp_path / ".unfinished-gone")
