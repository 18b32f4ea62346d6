"""The start of a cluster is told apart from what a line takes, and the overhead has its bar."""

import pathlib

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.speed.cluster import Corpus, written_corpus

CORPUS = Corpus(pathlib.Path("all"), 1000, pathlib.Path("few"), 100)


def test_a_way_that_needs_10_seconds_and_a_tenth_of_one_per_line_is_told_so():
    found = CORPUS.measurement("a way", 10 + 1000 / 10, 10 + 100 / 10)
    assert (found.start, found.rate) == pytest.approx((10, 10))
    with pytest.raises(BenchmarkError, match="100 lines took as long as 1000"):
        CORPUS.measurement("a way", 3, 3)


def test_the_lines_are_repeated_and_the_few_are_the_first(tmp_path):
    corpus = written_corpus(tmp_path, ["one", "two", "three"], 100)
    assert corpus.few == 2 and corpus.few_path.read_text(encoding="utf-8") == "one\ntwo\n"
    lines = corpus.path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 100 and lines[3:6] == ["one", "two", "three"]
