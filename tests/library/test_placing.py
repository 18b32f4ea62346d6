"""Where protected spans go in a translation, decision by decision; test_protected.py has whole translations."""

import re

import pytest

from keras_transformer.text.occurrences import occurrences
from keras_transformer.text.placing import (
    alignment_of,
    best_run_of,
    groups,
    insert,
    is_other_form,
    is_replaceable,
    is_through,
    leading,
    placed,
    run_alike,
    text_of,
    trailing,
)
from keras_transformer.text.protected import joint, moved
from keras_transformer.text.source import Source, replaced
from keras_transformer.text.spans import NUMBERS, PLACEHOLDERS, TAGS, TERM, Span
from keras_transformer.text.tags import without_tags
from keras_transformer.text.unit_chain import Unit, UnitChain
from keras_transformer.text.words import is_apart


def source(text, *targets, kind=PLACEHOLDERS):
    """A source with a span for each of these texts, from left to right."""
    spans, reached = [], 0
    for target in targets:
        start = text.index(target, reached)
        reached = start + len(target)
        spans.append(Span(start, reached, kind, target))
    return Source(text, tuple(spans))


def units(*sources, text="w", placed=()):
    """Units of one word that are aligned to these words of the source."""
    return [
        Unit(" " * (number > 0), text, frozenset(of_unit), number in placed) for number, of_unit in enumerate(sources)
    ]


def test_an_alignment_is_pairs_of_numbers():
    assert alignment_of("0-0 12-3") == [(0, 0), (12, 3)] and alignment_of("") == []


@pytest.mark.parametrize("start, end, numbers", [(0, 3, [0]), (2, 5, [1]), (1, 4, [0, 1]), (2, 3, []), (0, 5, [0, 1])])
def test_a_part_of_a_text_is_of_the_words_that_it_touches(start, end, numbers):
    assert list(Source("ab cd", ()).words_of(start, end)) == numbers


@pytest.mark.parametrize(
    "text, place, number",
    [("a b", 0, 0), ("a b", 1, 1), ("a b", 2, 1), ("(a). b", 1, 0), ("(a). b", 2, 1), ("ab", 1, 1)],
)
def test_a_word_is_behind_a_place_if_its_first_letter_is(text, place, number):
    assert Source(text, ()).first_word_behind(place) == number


@pytest.mark.parametrize(
    "spans, others",
    [([], "{x} a {y}{z} b"), (["{x}"], " a {y}{z} b"), (["{y}", "{z}"], "{x} a  b"), (["{x}", "{y}", "{z}"], " a  b")],
)
def test_the_text_between_spans_stays_if_something_takes_their_place(spans, others):
    of_spans = source("{x} a {y}{z} b", *spans)
    assert replaced(of_spans.text, of_spans.spans, lambda span: "") == others
    assert replaced(of_spans.text, of_spans.spans, lambda span: span.target) == of_spans.text


@pytest.mark.parametrize(
    "kind, translation, is_there",
    [
        (PLACEHOLDERS, "{x} a", True),
        (PLACEHOLDERS, "a", False),
        (PLACEHOLDERS, "{x} a {x}", False),
        (NUMBERS, "7 a 7", True),
        (NUMBERS, "7 a", True),
        (NUMBERS, "7.5 a", False),
        (NUMBERS, "7% a", False),
    ],
)
def test_a_span_is_through_as_often_as_in_the_source_and_a_number_more_often(kind, translation, is_there):
    target = "7" if kind == NUMBERS else "{x}"
    assert is_through(source(target, target, kind=kind), translation) == is_there


@pytest.mark.parametrize(("kind", "target"), [(PLACEHOLDERS, "{x}"), (NUMBERS, "7")])
def test_a_span_that_comes_twice_in_the_source_is_not_through_with_one_copy(kind, target):
    twice = source(f"{target} or {target}", target, target, kind=kind)
    assert is_through(twice, f"{target} a {target}") and not is_through(twice, f"{target} a")


def test_occurrences_are_whole_words_the_longest_first_and_none_overlaps_another():
    assert occurrences(source("b a b", "b", "a b").spans, "a b") == {"a b": [(0, 3)], "b": []}
    assert occurrences(source("a-a", "a-a").spans, "aa-a-a") == {"a-a": [(3, 6)]}
    assert [is_apart(text, 1, 2) for text in ("a7a", "-7-", "犬7犬", "a7-", "-7a")] == [False, True, True, False, False]


@pytest.mark.parametrize(
    "translation, alignment, kind, text",
    [
        ("{x} b {x} cde", [(0, 0), (0, 2)], PLACEHOLDERS, "{x} b cde"),
        ("{x} b {x} cde", [(1, 1)], PLACEHOLDERS, "{x} b cde"),
        ("{x} b ({x}) cde", [(1, 1)], PLACEHOLDERS, "{x} b () cde"),
        ("{x} b {x}", [(0, 2)], PLACEHOLDERS, " b {x}"),
        ("7 b 7", [(0, 0), (0, 2)], NUMBERS, "7 b 7"),
        ("7.5 b c", [(0, 0), (1, 1)], NUMBERS, "7 b c"),
        ("1 000 b", [(0, 0), (0, 1), (1, 2)], NUMBERS, "7 b"),
    ],
)
def test_of_copies_of_what_comes_once_the_aligned_one_stays_else_the_first(translation, alignment, kind, text):
    target = "7" if kind == NUMBERS else "{x}"
    found = placed(source(f"{target} a", target, kind=kind), translation, alignment)
    assert text_of(found.units) == text and not found.unplaced
    assert [unit.text for unit in found.units if unit.is_placed] == [target] * text.count(target)


def test_without_an_alignment_what_was_not_copied_has_no_place_but_in_an_empty_translation():
    of_two = source("a {x} {y}", "{x}", "{y}")
    found = placed(of_two, "{y} b", [])
    assert text_of(found.units) == "{y} b" and found.unplaced == [of_two.spans[0]]
    assert placed(of_two, "b", []).unplaced == list(of_two.spans)
    empty = placed(source("{x}", "{x}"), "", [])
    assert text_of(empty.units) == "{x}" and not empty.unplaced


def test_spans_of_one_word_are_one_group():
    spans = source("{a}/{b} {c}", "{a}", "{b}", "{c}")
    assert groups(spans, spans.spans) == [list(spans.spans[:2]), [spans.spans[2]]]


@pytest.mark.parametrize(
    "of, translation, alignment, text",
    [
        (source("a ({x}).", "{x}"), "b (c).", [(0, 0), (1, 1)], "b ({x})."),
        (source("a {x}-fold b", "{x}"), "c d b", [(0, 0), (1, 1), (2, 2)], "c {x}-fold b"),
        (source("a {x}は", "{x}"), "c d", [(0, 0), (1, 1)], "c d {x}"),
        (source("a {x}/{y} b", "{x}", "{y}"), "c {x} d e", [(0, 0), (1, 2), (2, 3)], "c {x} {y} e"),
        (source("a {x}, b", "{x}"), "c d e", [(0, 0), (2, 2)], "c {x} d e"),
    ],
)
def test_a_span_takes_the_place_of_what_it_is_aligned_to_with_its_punctuation(of, translation, alignment, text):
    assert text_of(placed(of, translation, alignment).units) == text


@pytest.mark.parametrize(
    "translation, alignment, required, text",
    [
        ("c Hund d", [(0, 0), (1, 1), (2, 2)], ["Hund"], "c Hund {x} d"),
        ("c alter Hund d", [(0, 0), (0, 1), (2, 3)], ["alter Hund"], "c alter Hund {x} d"),
        ("ein alter Hund d", [(0, 0), (1, 1), (2, 3)], ["ein alter", "alter Hund"], "ein alter Hund {x} d"),
    ],
)
def test_a_span_neither_replaces_nor_divides_what_is_required(translation, alignment, required, text):
    assert text_of(placed(source("a {x} b", "{x}"), translation, alignment, required).units) == text


def test_what_belongs_before_a_span_of_several_words_divides_it_not():
    spans = source("N b c {y} d", "N", "{y}")
    of_two = Source(spans.text, (spans.spans[0]._replace(target="New York"), spans.spans[1]))
    alignment = [(0, 0), (0, 1), (4, 2), (0, 3), (0, 4)]
    assert text_of(placed(of_two, "v w x y z .", alignment).units) == "{y} New York ."


def test_nothing_stands_between_the_words_of_a_number_that_was_copied():
    of_two = source("a {x} 1 000 b", "{x}", "1 000")
    two = Source(of_two.text, (of_two.spans[0], of_two.spans[1]._replace(kind=NUMBERS)))
    assert text_of(placed(two, "c 1 000 d", [(0, 0), (2, 1)]).units) in ("c {x} 1 000 d", "c 1 000 {x} d")


@pytest.mark.parametrize(
    "weights, run",
    [([], None), ([-1], None), ([1, -1, 1], (0, 0)), ([1, -1, -1, 1, 1], (3, 4)), ([-1, 1, 1, -1, 1], (1, 2))]
    + [([1, 1, -1, 1, 1], (0, 4)), ([-1, 1, -1, -1, 1], (1, 1))],
)
def test_the_best_run_has_the_largest_sum_and_is_the_first_and_shortest_of_its_kind(weights, run):
    assert best_run_of([number for number, weight in enumerate(weights) if weight > 0]) == run
    found = UnitChain(units(*({7} if weight > 0 else () for weight in weights))).best_run(range(7, 8))
    assert run == (found and (found[0].number, found[1].number))


def test_no_run_has_what_is_placed():
    words = units({7}, {7}, {7}, {7}, {7}, placed=(2,))
    found = UnitChain(words).best_run(range(7, 8))
    assert (found[0].number, found[1].number) == (0, 1)


@pytest.mark.parametrize(
    "word, term, is_form",
    [
        ("Banken,", "Bank", True),
        ("Sitzbank", "Bank", True),
        ("„Bank“", "Sitzbank", True),
        ("Häuser", "Haus", False),
        ("Bankengruppe", "Bank", False),
        ("Bankende", "Banker", True),
        ("Hut", "Hut", False),
        ("Rat", "Ratte", False),
        ("Tisch", "Stuhl", False),
        ("Bankenla", "Bank", False),
        ("Banken1", "Bank", True),
    ],
)
def test_a_form_of_a_term_begins_as_it_does_and_is_about_as_long_or_one_ends_as_the_other(word, term, is_form):
    assert is_other_form(word, term) == is_form


def alike(words, place):
    """The number of the unit that is nearest to a place, and another form of Bank."""
    chain = UnitChain(words)
    run = run_alike(chain, "Bank", [*chain, chain.end][place])
    return run and run[0].number


def test_the_form_of_a_term_that_is_nearest_and_not_placed_is_replaced():
    words = units((), (), (), (), text="Banken")
    words[2] = words[2]._replace(text="x")
    assert alike(words, 2) == 1 and alike(words[2:], 0) == 1
    words[1] = words[1]._replace(is_placed=True)
    assert alike(words, 2) == 3 and alike(words[1:3], 0) is None
    term = source("a bank b", "bank", kind=TERM)
    term = Source(term.text, (term.spans[0]._replace(target="Bank"),))
    assert text_of(placed(term, "c Banken d", [(0, 0), (2, 2)]).units) == "c Bank d"
    other = Source(term.text, (term.spans[0]._replace(target="Bank", kind=NUMBERS),))
    assert text_of(placed(other, "c Banken d", [(0, 0), (2, 2)]).units) == "c Bank Banken d"


def test_a_run_is_not_replaced_that_is_much_longer_than_the_span_or_the_whole_of_a_sentence_of_more_words():
    of_two = Source("a b", ())

    def is_short(words, last, numbers):
        links = list(chain := UnitChain(words))
        return is_replaceable(of_two, chain, (links[0], links[last]), numbers, "x")

    assert is_short([Unit("", "w" * 33, frozenset()), *units(())], 0, [0])
    assert not is_short([Unit("", "w" * 34, frozenset()), *units(())], 0, [0])
    assert not is_short(units((), ()), 1, [0]) and is_short(units((), ()), 1, [0, 1])


@pytest.mark.parametrize(
    "sources, numbers, place",
    [
        ([{0}, {2}], [1], 1),
        ([{0}, {1}, {3}], [0, 1], 2),
        ([{0}, {3}, {0}], [1], 3),
        ([{2}, {2}], [1], 0),
        ([{3}, set()], [1], 0),
        ([set(), set()], [1], 2),
        ([{5}, {0}], [1], 2),
        ([set(), {4}, {4}], [0], 1),
        ([], [0], 0),
        ([set(), {0}], [2], 2),
    ],
)
def test_what_nothing_is_aligned_to_belongs_behind_the_nearest_word_before_it_or_before_the_nearest_behind(
    sources, numbers, place
):
    chain = UnitChain(units(*sources))
    found = chain.place_beside(range(numbers[0], numbers[-1] + 1))
    assert [*chain, chain.end].index(found) == place


@pytest.mark.parametrize(
    "words, place, suffix, text",
    [
        (["a", "b"], 0, "", "{x} a b"),
        (["a", "b"], 1, "", "a {x} b"),
        (["a", "b"], 2, "", "a b {x}"),
        ([], 0, "", "{x}"),
        (["a", "b."], 2, ".", "a b {x}."),
        (["a", "b."], 2, "", "a b. {x}"),
        (["a", "?!"], 2, "?", "a ?! {x}"),
        (["a", "b"], 2, ".", "a b {x}"),
        (["a."], 0, ".", "{x} a."),
    ],
)
def test_what_is_inserted_stands_between_spaces_and_before_the_stop_of_the_sentence(words, place, suffix, text):
    before = [Unit(" " * (number > 0), word, frozenset()) for number, word in enumerate(words)]
    chain = UnitChain(before)
    insert(chain, [*chain, chain.end][place], "{x}", suffix, range(7, 8))
    assert text_of(chain.units()) == text
    [new] = [unit for unit in chain.units() if unit.is_placed]
    assert "{x}" in new.text and chain.place_beside(range(8, 9)).before.unit == new


def test_a_stop_of_what_is_placed_stays_with_it():
    chain = UnitChain(units((), text="{y}.", placed=(0,)))
    insert(chain, chain.end, "{x}", ".", range(1))
    assert text_of(chain.units()) == "{y}. {x}"


@pytest.mark.parametrize(
    "word, affix, value, begins, ends",
    [
        ("(Hund.", "", "x", "(", "."),
        ("(Hund).", ")", "x", "(", ")."),
        ("(.", "(", "(y.", "", ""),
        ("#a#", "#", "y", "#", "#"),
        ("#a#", "", "y", "", ""),
        ("Hund", "", "x", "", ""),
        ("(((", "", "y", "(((", ""),
    ],
)
def test_punctuation_around_a_word_stays_unless_the_value_has_it(word, affix, value, begins, ends):
    assert (leading(word, affix, value), trailing(word, affix, value)) == (begins, ends)


@pytest.mark.parametrize(
    "left, right, in_source, between",
    [("a", "b", " ", " "), ("a", "b", "", " "), ("a", "b", "c", ""), ("a", "b", "\u27e6", ""), ("a", "b", "\u27e7", "")]
    + [("a", ".", " ", ""), (".", "b", " ", ""), ("犬", "b", " ", ""), ("a", "犬", " ", ""), ("", "b", " ", "")],
)
def test_a_space_parts_two_characters_that_would_make_one_word_unless_the_source_has_none(
    left, right, in_source, between
):
    assert joint(left, right, in_source) == between


def test_a_span_moves_by_the_tags_before_it_and_the_spaces_that_stand_for_them():
    text = "a<br>b <i>7</i> 8"
    tags = [Span(*found.span(), TAGS, found[0]) for found in re.finditer("<[^>]*>", text)]
    stripped = without_tags(text, tags)
    for number in "78":
        place = text.index(number)
        span = moved(Span(place, place + 1, NUMBERS, number), tags, stripped)
        assert stripped.text[span.start : span.end] == number
