"""data.documents: a column or a blank line tells the documents of a text apart."""

import pytest

from train.config.sources.files import FilesData
from train.data.corpus import CorpusError
from train.data.documents import document_lines
from train.data.prepare import load_corpus


def data(folder, documents, **texts):
    """FilesData of TSV files: of each split its text."""
    for name, text in texts.items():
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8")
    paths = {name: [str(folder / f"{name}.tsv")] for name in texts}
    return FilesData(source="files", documents=documents, **paths)


def lines(section):
    corpus = load_corpus(section)
    return list(document_lines(split for split in (corpus.train, corpus.validation, corpus.test) if split))


def test_a_column_names_the_document_and_one_in_two_splits_is_told(tmp_path):
    train = "a\tx\tone\nb\ty\tone\nc\tz\ttwo\n"
    assert lines(data(tmp_path, "column", train=train, validation="d\tv\tthree\n", test="e\tw\ttwo\nf\tu\tfour\n")) == [
        "data.train: 2 documents of 1.5 pairs in the mean",
        "data.validation: 1 documents of 1.0 pairs in the mean",
        "data.test: 2 documents of 1.0 pairs in the mean; data.train has 1 of them too, such as two: scores may be too "
        "high",
    ]


def test_a_blank_line_ends_a_document_and_is_no_pair_that_is_skipped(tmp_path):
    section = data(tmp_path, "blank line", train="a\tx\nb\ty\n\nc\tz\n\n\n", validation="a\tx\n\nc\t\n")
    assert lines(section) == [
        "data.train: 2 documents of 1.5 pairs in the mean",
        "data.validation: 1 documents of 1.0 pairs in the mean",
    ]
    corpus = load_corpus(section)
    assert list(corpus.train) == [("a", "x"), ("b", "y"), ("c", "z")] and not corpus.train.skipped
    assert list(corpus.validation) == [("a", "x")] and corpus.validation.skipped == {"empty target": 1}
    assert list(load_corpus(section.model_copy(update={"documents": None})).train.documents()) == []


def test_two_files_may_have_blank_lines_but_no_column(tmp_path):
    pair = [str(tmp_path / name) for name in ("a.en", "a.de")]
    for path in pair:
        (tmp_path / path).write_text("one\n\ntwo\nthree\n", encoding="utf-8")
    section = FilesData(source="files", documents="blank line", train=[pair], validation=[pair])
    assert lines(section)[0] == "data.train: 2 documents of 1.5 pairs in the mean"
    with pytest.raises(ValueError, match="are two files"):
        FilesData(source="files", documents="column", train=[pair], validation=[pair])


def test_a_line_without_a_third_column_is_named(tmp_path):
    section = data(tmp_path, "column", train="a\tx\tone\nb\ty\n", validation="a\tx\tone\n")
    with pytest.raises(CorpusError, match="train.tsv, line 2 has no third column"):
        lines(section)
