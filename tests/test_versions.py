"""Numbered versions in one folder: complete ones alone are found, and an unfinished one leaves nothing."""

import pytest

from export.versions import ExportError, find_version, publish, unfinished_version


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


def test_two_exports_at_the_same_time_get_two_numbers(tmp_path, monkeypatch):
    with unfinished_version(tmp_path) as one, unfinished_version(tmp_path) as other:
        (one / "saved_model.pb").touch()
        assert publish(one) == tmp_path / "1"
        monkeypatch.setattr("export.versions.versions", lambda folder: [])  # as it was when the other one looked
        assert publish(other) == tmp_path / "2"


def test_ten_is_newer_than_nine(tmp_path):
    for number in (9, 10):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "saved_model.pb").touch()
    assert find_version(tmp_path).name == "10"


def test_an_interrupted_export_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), unfinished_version(tmp_path / "a" / "b") as unfinished:
        (unfinished / "half").touch()
        raise KeyboardInterrupt
    assert names_in(tmp_path) == []
