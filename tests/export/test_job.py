"""What every export is told: which sentences it is compared on, and with which search."""

import dataclasses

import pytest

from export.job import MOST_SENTENCES, ExportJob
from export.versions import ExportError
from keras_transformer.pieces.language_marks import Languages
from keras_transformer.search.options import SearchOptions
from tests.support.places import ROOT

OPTIONS = SearchOptions(beam_size=3, shortlist="on")


def job(sentences=None):
    return ExportJob(None, None, OPTIONS, 99, sentences)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("a\nb\n", ["a", "b"]),
        ("\na\n \n", ["", "a", " "]),
        ("a", ["a"]),
        ("a\n" * (MOST_SENTENCES + 1), ["a"] * MOST_SENTENCES),
    ],
)
def test_an_export_is_compared_on_the_first_lines_of_the_file(content, lines, tmp_path):
    (tmp_path / "lines").write_text(content)
    assert job(tmp_path / "lines").lines() == lines


@pytest.mark.parametrize("content", [None, "", "\n", " \n\t\n\u3000\n"])
def test_without_a_file_nothing_is_compared_and_a_file_without_a_sentence_is_refused(content, tmp_path):
    assert job().lines() == []
    if content is not None:
        (tmp_path / "lines").write_text(content)
    with pytest.raises(ExportError, match="lines.* to compare the export on"):
        job(tmp_path / "lines").lines()


def test_lines_of_many_languages_are_all_told_the_default_if_there_is_one(tmp_path):
    (tmp_path / "lines").write_text("<2de>a\n<2fr>b\nc\n")
    tagged = job(tmp_path / "lines")._replace(languages=Languages({}, {"de": "<2de>", "fr": "<2fr>"}, "target"))
    assert tagged.lines() == ["<2de>a", "<2fr>b", "c"]
    assert tagged._replace(languages=tagged.languages.by_default(target="fr")).lines() == ["a", "b", "c"]


def test_without_a_shortlist_nothing_else_is_changed():
    without = job().without_shortlist()
    assert without.options.shortlist == "off" and job().options == OPTIONS
    assert without == job()._replace(options=dataclasses.replace(OPTIONS, shortlist="off"))


def test_so_many_sentences_are_compared_as_the_documents_say():
    serving = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    assert f"are the first {MOST_SENTENCES} of the validation text" in serving
