"""Pairs that came before are found in the whole corpus, however it is divided, and each line keeps its place."""

import random

import pytest

from cluster.duplicates import REPEATED, MarkedRows, marked, part_of_hash, unique
from cluster.formats import JsonLines, TabLines
from tests.support.local_spark import Parts


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_a_line_is_marked_if_its_texts_came_before_in_any_part(parts):
    draw = random.Random(parts)
    lines = [f"{draw.randrange(9)}\t{draw.randrange(9)}\t{number}" for number in range(200)] + ["no tab", "no tab"]
    bounds = [0, *sorted(draw.choices(range(len(lines)), k=parts - 1)), len(lines)]
    divided = Parts([lines[first:end] for first, end in zip(bounds, bounds[1:], strict=False)])
    rows = [pair for part in marked(divided, TabLines((1, 2))).parts for pair in part]
    assert [line for line, _ in rows] == lines
    texts = [line.split("\t")[:2] for line in lines]
    has_texts = [len(each) == 2 for each in texts]  # what cannot be read is no duplicate
    assert [mark for _, mark in rows] == [
        has_texts[number] and texts[number] in texts[:number] for number in range(len(lines))
    ]


def test_texts_that_look_the_same_when_joined_are_not():
    lines = [
        '{"a": "x\\n", "b": "y"}',
        '{"a": "x", "b": "\\ny"}',
        '{"b": "y", "a": "x\\n"}',
        '{"a": "\\ud800", "b": ""}',
    ]
    rows = marked(Parts([lines]), JsonLines(("a", "b"))).parts[0]
    assert [mark for _, mark in rows] == [False, False, True, False]


def test_a_marked_line_is_written_as_an_unmarked_one():
    plain, both = TabLines((1,)), MarkedRows(TabLines((1,)))
    assert both.read(("one\ttwo", True)) == ("one", REPEATED) and both.read(("one", False)) == ("one", "")
    assert both.write(("one", True), {"dropped": "x"}) == plain.write("one", {"dropped": "x"})
    refused = both.refuse(("one", False), ["dropped"], "No.")
    assert refused == plain.refuse("one", ["dropped"], "No.") and both.is_refused(refused)


def test_no_two_lines_without_texts_are_one():
    assert len({unique(part, place) for part in range(30) for place in range(30)}) == 900
    assert {part_of_hash((unique(3, place), 3, place)) % 7 for place in range(90)} == set(range(7))  # nor in one part
