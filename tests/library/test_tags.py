"""Tags out of a text and back, decision by decision; test_protected.py and test_marks.py have whole translations."""

import itertools
import re

import pytest

from keras_transformer.text.placing import Source, Unit
from keras_transformer.text.spans import LEFT, RIGHT, TAGS, Span
from keras_transformer.text.tag_marks import Mark, Punctuation, core_and_tail, head_of, punctuation_at
from keras_transformer.text.tags import Tag, is_whole, lone_mark, name_of, partners, tree_of, with_tags, without_tags


def tags_in(text):
    return [Span(*found.span(), TAGS, found[0]) for found in re.finditer("<[^>]*>", text)]


@pytest.mark.parametrize(
    "text, bare, places, divides",
    [
        ("a<br>b", "a b", [1], [True]),
        ("a <br>b", "a b", [2], [False]),
        ("a<br> b", "a b", [1], [False]),
        ("<br>b", "b", [0], [False]),
        ("a<br>", "a", [1], [False]),
        ("a<br><br>b", "a b", [1, 2], [True, False]),
        ("a<BR/><b>b</b>", "a b", [1, 2, 3], [True, False, False]),
        ("a<b>b</b>c", "abc", [1, 2], [False, False]),
    ],
)
def test_a_tag_that_alone_divides_two_words_becomes_a_space(text, bare, places, divides):
    assert without_tags(text, tags_in(text)) == (bare, places, divides)


@pytest.mark.parametrize(
    "tag, name, whole",
    [
        ("<BR>", "br", True),
        ("<b class='x'>", "b", False),
        ("<x/>", "x", True),
        ("</b>", "b", False),
        ("<!-- b -->", "", True),
        (f"{LEFT}alone 1/{RIGHT}", "alone", True),
        (f"{LEFT}element-b 1{RIGHT}", "element-b", False),
    ],
)
def test_a_tag_has_a_name_and_may_be_whole(tag, name, whole):
    assert (name_of(tag), is_whole(tag)) == (name, whole)


@pytest.mark.parametrize(
    "text, pairs",
    [
        ("<b><b></b></b>", {1: 2, 0: 3}),
        ("<b><i></b></i>", {0: 2}),
        ("</b><b>", {}),
        ("<b><br></B>", {0: 2}),
        ("<b></i></b>", {0: 2}),
    ],
)
def test_a_tag_is_closed_by_the_next_one_of_its_name_which_leaves_those_inside_alone(text, pairs):
    assert partners(tags_in(text)) == pairs


@pytest.mark.parametrize(
    "text, place, opens, beside",
    [
        ("(a)", 1, True, ("(", "", True)),
        ("(a)", 0, True, ("", "(", False)),
        ("(a)", 2, False, (")", "", True)),
        ("(a).", 3, False, (".", ")", True)),
        ('("a', 1, True, ("(", '"', True)),
        ("(ab)", 2, True, ("(", "", False)),
        ("(ab)", 2, False, (")", "", False)),
        ("x .", 2, False, (".", "", False)),
        ("x. y", 3, False, ("", "", False)),
        ("( x", 1, True, ("(", "", False)),
    ],
)
def test_punctuation_of_a_word_stands_outside_of_a_tag_or_inside(text, place, opens, beside):
    assert punctuation_at(text, place, opens) == beside


@pytest.mark.parametrize(
    "text, place, divides, mark",
    [
        ("a b", 2, False, Mark("<x/>", False, has_space=True)),
        ("a b", 1, False, Mark("<x/>", True)),
        ("a.", 1, False, Mark("<x/>", True, Punctuation("."))),
        ("(a", 1, False, Mark("<x/>", False, Punctuation("(", "", True))),
        ("a b", 0, False, Mark("<x/>", False)),
        ("a b", 1, True, Mark("<x/>", False, divides=True)),
        ("a  b", 2, False, Mark("<x/>", False, has_space=True, is_apart=True)),
        (" b", 0, False, Mark("<x/>", False, is_apart=True)),
    ],
)
def test_a_tag_that_stands_alone_stands_between_its_neighbours_as_in_the_source(text, place, divides, mark):
    found = lone_mark(text, Tag(place, place, "<x/>", "", (), (divides, False)))
    assert found._replace(beside=mark.beside) == mark and found.beside[:2] == mark.beside[:2]


def test_a_word_is_parted_from_its_punctuation_but_not_a_word_of_punctuation():
    words = ('Hund."', "...", "a.b", "(Hund).", "Hund(e).", "{name}.", "{{name}}", "「犬」。")
    assert [core_and_tail(word) for word in words] == [
        ("Hund", '."'),
        ("...", ""),
        ("a.b", ""),
        ("(Hund", ")."),
        ("Hund(e)", "."),
        ("{name}", "."),
        ("{{name}}", ""),
        ("「犬", "」。"),
    ]
    assert [head_of(word) for word in ("(Hund", "(", "¿a", "「犬", "{a}")] == ["(", "", "¿", "「", ""]


def back(text, translation, *alignment):
    """The translation with the tags of a text; word n comes from the words alignment[n] of the text."""
    stripped = without_tags(text, tags_in(text))
    units = [
        Unit(found[1], found[2], frozenset(words))
        for found, words in zip(re.finditer(r"(\s*)(\S+)", translation), alignment, strict=True)
    ]
    return with_tags(Source(stripped.text, ()), tree_of(tags_in(text), stripped), units)


@pytest.mark.parametrize(
    "text, translation, alignment, written",
    [
        ("a <b>b</b> c", "B A C", [{1}, {0}, {2}], "<b>B</b> A C"),
        ("a <b>b c</b>", "B A C", [{1}, {0}, {2}], "<b>B</b> A C"),
        ("a (<b>b</b>).", "A (B).", [{0}, {1}], "A (<b>B</b>)."),
        ("a b<x/>.", "A B.", [{0}, {1}], "A B<x/>."),
        ('a "<x/>b"', 'A "B"', [{0}, {1}], 'A "<x/>B"'),
        ("a <b>un</b>b.", "A Unb.", [{0}, {1}], "A <b>Unb</b>."),
        ("a <b>{b}</b>.", "A {b}.", [{0}, {1}], "A <b>{b}</b>."),
        ("a <b>b</b> c.", "C A B.", [{2}, {0}, {1}], "C A <b>B</b>."),
        ("<b>a b</b>", "A B.", [{0}, {1}], "<b>A B.</b>"),
        ("a <b>b</b>.", 'A "B".', [{0}, {1}], 'A <b>"B"</b>.'),
        ("<b>a</b> b?", "¿A B?", [{0}, {1}], "<b>¿A</b> B?"),
        ("a <b>b</b> c?", "¿B A C?", [{1}, {0}, {2}], "¿<b>B</b> A C?"),
        ("a<br>b", "A B", [{0}, {1}], "A<br>B"),
        ("a <x/> b", "A B", [{0}, {1}], "A <x/> B"),
        ("a<x/> b", "B A", [{1}, {0}], "<x/>B A"),
        ("<x/>a b", "A B", [{0}, {1}], "<x/>A B"),
        ("a b<x/>", "A B", [{0}, {1}], "A B<x/>"),
        ("a<div>b</div>c", "A B C", [{0}, {1}, {2}], "A<div>B</div>C"),
        ("a<div>b</div> c", "A B C", [{0}, {1}, {2}], "A<div>B</div> C"),
        ("a <div>b</div>c", "A B C", [{0}, {1}, {2}], "A <div>B</div>C"),
        ("<b>a <i>b</i></b> c", "B A C", [{1}, {0}, {2}], "<b><i>B</i> A</b> C"),
        ("<b>a</b> <i>b</i>", "A B", [{0}, {1}], "<b>A</b> <i>B</i>"),
        ("a </i><b>b</b> c", "B A C", [{1}, {0}, {2}], "B A </i><b></b>C"),
        ("a <b>b</b> c", "C", [{2}], "<b></b>C"),
    ],
)
def test_tags_are_around_the_words_that_come_from_those_inside(text, translation, alignment, written):
    assert back(text, translation, *alignment) == written


PAIRS = ["()", "[]", '""', "„“", "“”", "«»", "»«", "‹›", "''", "‘’", "「」", "『』", "《》", "（）", "【】"]


@pytest.mark.parametrize(
    "source",
    [
        "A <b>(w)</b>.",
        "A (<b>w</b>).",
        "A <b>(w</b>).",
        "A (<b>w)</b>.",
        "A <b>(w).</b>",
        "A (<b>w).</b>",
        "A <b>(w c)</b>.",
        "<b>A (w)</b>.",
        "A <i><b>(w)</b></i>.",
        "A <i>(<b>w</b>)</i>.",
        "A <i><b>(w</b>)</i>.",
        "A (<i><b>w</b>).</i>",
        "A <b>(<i>w</i> c)</b>.",
        "A (w<x/>).",
        "A (<x/>w).",
        "A (w)<x/>.",
        "A (w).<x/>",
    ],
)
def test_a_tag_stands_between_the_same_punctuation_as_in_the_source(source):
    for pair, stop in itertools.product(PAIRS, ["", ".", "。", ",", "?!", "…"]):
        text = source.translate({ord("("): pair[0], ord(")"): pair[1], ord("."): stop})
        words = without_tags(text, tags_in(text)).text.split()
        numbers = [{number} for number in range(len(words))]
        assert back(text, " ".join(words), *numbers) == text
        longer = " ".join(words).replace("w", "v w")
        assert back(text, longer, numbers[0], {1}, *numbers[1:]) == text.replace("w", "v w")
