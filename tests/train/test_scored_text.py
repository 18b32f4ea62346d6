"""The text that is scored: of a run's own test set, whose lines are those of its files or named as missing."""

import pathlib

from train.config.sources.files import FilesData
from train.scoring.scored_text import pairs_of_test_set


def test_a_runs_test_set_needs_no_training_text(tmp_path):
    (tmp_path / "test.tsv").write_text("a\tb\nc\td\n", encoding="utf-8")
    data = {"source": "files", "train": [["none.en", "none.de"]], "validation": [str(tmp_path / "test.tsv")]}
    expected = [("a", "b"), ("c", "d")]
    assert pairs_of_test_set(FilesData(**data), None) == ("data.validation", expected)
    data |= {"validation": ["none.tsv"], "test": [str(tmp_path / "test.tsv")]}
    assert pairs_of_test_set(FilesData(**data), None) == ("data.test", expected)


def test_pairs_without_text_are_left_out_aloud(tmp_path, caplog):
    (tmp_path / "test.tsv").write_text("a\tb\n\tx\nc\td\n", encoding="utf-8")
    data = FilesData(source="files", train=["none.tsv"], validation=[str(tmp_path / "test.tsv")])
    assert pairs_of_test_set(data, None)[1] == [("a", "b"), ("c", "d")]
    assert "left out, and not counted: 1 empty source" in caplog.text and "--output" not in caplog.text
    pairs_of_test_set(data, pathlib.Path("out"))
    assert "1 empty source. --output out has no lines for them" in caplog.text
