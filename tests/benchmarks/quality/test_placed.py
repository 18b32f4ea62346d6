"""Tags and terms that are placed: a right alignment places each at its word, and one that is off by a word none."""

import gzip

import pytest

from benchmarks.quality import decisions, placed
from benchmarks.quality.placed import inside, right_tags, right_terms, row, with_tag
from keras_transformer.shortlist.certain_links import CertainLinks
from tests.support.commands import assert_one_sentence, invoke
from tests.support.engines import Writer, diagonal

LINES = ["We saw 4 dogs, and Anna1 slept.", "Ben2 or Eve3 ate (all) 19 eggs!"]
LINKS = CertainLinks([])  # numbers and names alone


def off_by_one(line):
    count = len(line.split())
    return [((number + 1) % count, number) for number in range(count)]


@pytest.mark.parametrize(("alignment", "share"), [(diagonal, "100.0%"), (off_by_one, "0.0%")])
def test_all_that_is_aligned_rightly_is_counted_and_nothing_else(alignment, share):
    engine = Writer(str.upper, alignment)
    assert row("writer", engine, LINES, LINKS, 9) == f"| writer | 5 | {share} | {share} |"
    gold = LINKS.best_known([(line, line.upper()) for line in LINES], 9)
    assert right_tags(engine, gold) == right_terms(engine, gold) == (5 if alignment is diagonal else 0)


def test_a_tag_is_around_a_word_without_its_marks():
    assert with_tag(LINES[1].split(), 4) == "Ben2 or Eve3 ate (<b>all</b>) 19 eggs!"
    assert inside("A (<b>Köter, 4</b>) B") == ["köter", "4"] and inside("no tags") == []


@pytest.mark.parametrize("app", [placed.app, decisions.app])
def test_texts_may_be_packed_and_have_as_many_lines(app, tmp_path):
    source, target = tmp_path / "source.gz", tmp_path / "target"
    source.write_bytes(gzip.compress(b"one\ntwo\n"))
    target.write_text("eins\n")
    assert_one_sentence(invoke(app, "run", source, target), "source.gz has 2 lines", "target has 1")
