"""The start of a cluster is told apart from what a line takes, and the overhead has its bar."""

import json
import pathlib

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.speed.cluster import Corpus, as_json, as_markdown, overhead, written_corpus

CORPUS = Corpus(pathlib.Path("all"), 1000, pathlib.Path("few"), 100)


def test_a_way_that_needs_10_seconds_and_a_tenth_of_one_per_line_is_told_so():
    found = CORPUS.measurement("a way", 10 + 1000 / 10, 10 + 100 / 10)
    assert (found.start, found.rate) == pytest.approx((10, 10))
    with pytest.raises(BenchmarkError, match="100 lines took as long as 1000"):
        CORPUS.measurement("a way", 3, 3)


@pytest.mark.parametrize(
    ("seconds", "compared", "word"),
    [
        (110, "10 per cent longer than", "kept"),
        (120, "20 per cent longer than", "missed"),
        (100, "as long as", "kept"),
        (99, "1 per cent less than", "kept"),
    ],
)
def test_the_overhead_is_that_of_the_most_workers_without_their_start(seconds, compared, word):
    alone = CORPUS.measurement("alone", 5 + 100, 5 + 10)
    one = CORPUS.measurement("one", 300, 60)
    two = CORPUS.measurement("two", 40 + seconds, 40 + seconds / 10, python=2**30, java=2**29)
    assert overhead([alone, one, two]) == pytest.approx(seconds - 100)
    page = as_markdown([alone, one, two], CORPUS)
    assert f"a line takes {compared} by the export alone; the bar of 15 per cent is {word}" in page
    assert "| 1,024 MiB | 512 MiB |" in page
    assert json.loads(as_json([alone, one, two], CORPUS))["ways"][2]["start"] == pytest.approx(40)


def test_the_lines_are_repeated_and_the_few_are_the_first(tmp_path):
    corpus = written_corpus(tmp_path, ["one", "two", "three"], 100)
    assert corpus.few == 2 and corpus.few_path.read_text(encoding="utf-8") == "one\ntwo\n"
    lines = corpus.path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 100 and lines[3:6] == ["one", "two", "three"]
