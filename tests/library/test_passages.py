"""Passages: where a sentence begins and ends in what is written, and where its marks go in a translation."""

import itertools

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from keras_transformer.text.passages import (
    LINE_BREAK,
    Line,
    Mark,
    Passage,
    Token,
    candidates_of,
    is_end_of_word,
    is_inside,
    places_of,
    stands_alone,
)

TEXTS = [Token(text, text) for text in ("a", "Dog", " ", " ", "犬", "é.", ",")] + [Token("&amp;", "&")]
TAGS = [Token("<b>", "", True), Token("</b>", "", True)]
# a format has its line breaks as text, or as marks
BREAKS = [Token("\n", "\n"), Token(" \r\n ", " \r\n ")], [Token("\n  ", " ", True)]
TOKENS = st.one_of(*(st.lists(st.sampled_from(TEXTS + TAGS + breaks), max_size=14) for breaks in BREAKS))


def put_back(line, write):
    """The text of a line with its marks as they are written."""
    text = line.text
    for mark in reversed(line.marks):
        text = f"{text[: mark.start]}\0{mark.raw}\0{text[mark.start + mark.length :]}"
    return "".join(part if number % 2 else write(part) for number, part in enumerate(text.split("\0")))


@settings(max_examples=150, deadline=None)
@given(TOKENS, st.data())
def test_a_line_and_its_marks_are_all_that_is_written_between_its_ends(tokens, data):
    passage = Passage(tokens)
    start = data.draw(st.integers(0, len(passage.text)))
    end = data.draw(st.integers(start, len(passage.text)))
    if not (sentence := passage.text[start:end]) or sentence != sentence.strip():
        return
    places = list(itertools.accumulate(len(token.text) for token in tokens))
    tags = [place for place, token in zip(places, tokens, strict=True) if not token.text]
    breaks = [found.span() for found in LINE_BREAK.finditer(passage.text)]
    if any(first < tag < last for tag in tags for first, last in breaks):
        return  # a tag in the white space around a line break stands behind it
    line = passage.line(start, end)
    raw = passage.raw[line.raw_start : line.raw_end]
    assert put_back(line, lambda text: text.replace("&", "&amp;")) == raw
    assert passage.rendered(line, line.text, {}) == raw
    assert "\n" not in line.text
    assert list(line.marks) == sorted(line.marks, key=lambda mark: mark.start)


@settings(max_examples=150, deadline=None)
@given(TOKENS, st.data())
def test_a_passage_cut_into_pieces_is_made_of_them(tokens, data):
    passage = Passage([*tokens, Token("many", "many"), *tokens])
    length = len(passage.text)
    cuts = sorted({0, length, *data.draw(st.lists(st.integers(0, length)))})
    pieces = list(itertools.pairwise(cuts))
    assert passage.made_of(pieces).raw == passage.raw
    new = passage.made_of([*pieces[:1], "new", *pieces[1:]])
    assert sorted(new.raw) == sorted(passage.raw + "new")
    assert new.text == f"{passage.text[: cuts[1]]}new{passage.text[cuts[1] :]}"


LEAVES = st.sampled_from([[Token("a", "a")], [Token("é", "é")], [Token("<br>", "", True)]])
NESTED = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        lambda name, parts: [Token(f"<{name}>", "", True), *sum(parts, []), Token(f"</{name}>", "", True)],
        st.sampled_from("bi"),
        st.lists(inner, max_size=3),
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(st.lists(NESTED, max_size=4), st.data())
def test_the_half_of_a_pair_at_an_end_is_part_of_a_sentence_that_has_the_other_half_and_no_other_mark_is(parts, data):
    passage = Passage(tokens := sum(parts, []))
    start = data.draw(st.integers(0, len(passage.text)))
    end = data.draw(st.integers(start, len(passage.text)))
    places = list(itertools.accumulate(len(token.text) for token in tokens))
    marks = [(place, token.raw) for place, token in zip(places, tokens, strict=True) if token.is_mark]
    marks = [(place, raw) for place, raw in marks if start <= place <= end]
    kept = {number for number, (place, _) in enumerate(marks) if start < place < end}
    opened, partner = [], {}
    for number, (_, raw) in enumerate(marks):  # tags that overlap have no partners
        if raw.startswith("</"):
            if opened and marks[opened[-1]][1] == raw.replace("/", ""):
                partner[number] = opened[-1]
                partner[opened.pop()] = number
        elif raw != "<br>":
            opened.append(number)
    assume(not opened and len(partner) == sum(raw != "<br>" for _, raw in marks))
    if kept:
        while (last := max(kept) + 1) < len(marks) and partner.get(last) in kept:
            kept.add(last)
        while (first := min(kept) - 1) >= 0 and partner.get(first) in kept:
            kept.add(first)
    line = passage.line(start, end, with_pairs=True)
    assert [mark.raw for mark in line.marks] == [marks[number][1] for number in sorted(kept)]
    inside = passage.line(start, end)
    assert [mark.raw for mark in inside.marks] == [raw for place, raw in marks if start < place < end]
    assert line.text == inside.text


@pytest.mark.parametrize(
    "text, shown",
    [
        ("犬\n犬", "犬犬"),
        ("犬 \n犬", "犬犬"),
        ("犬\na", "犬 a"),
        ("a\n犬", "a 犬"),
        ("a\r\n\r\nb", "a b"),
        ("a \n \nb", "a b"),
    ],
)
def test_a_line_break_is_a_space_but_between_two_characters_that_are_written_without(text, shown):
    assert Passage([Token(text, text)]).line(0, len(text)).text == shown


@pytest.mark.parametrize("text", ["a\nb\nc", "a \n b\r\nc\n d", "犬\nb\n犬\n犬\nc", "a\n\nb\nc"])
@pytest.mark.parametrize("tag", [Token("<b>", "", True), Token("<br/>", " ", True)])
def test_behind_several_line_breaks_marks_stand_where_they_stood(text, tag):
    """Whatever a line break becomes, those behind it and tags among the words are written in their places."""
    words = [Token(character, character) for character in text]
    tokens = [part for word in words for part in ([tag, word] if word.text == "c" else [word])]
    passage = Passage(tokens)
    assert put_back(passage.line(0, len(passage.text)), str) == passage.raw


WORDS = st.text("ab., 犬", min_size=1, max_size=8)
MARKS = st.lists(st.builds(Mark, st.integers(0, 7), st.just(0), st.sampled_from(["<b>", "\n"])), max_size=4)


@settings(max_examples=150, deadline=None)
@given(WORDS, MARKS, st.text("ab., 犬", max_size=8))
def test_marks_keep_their_order_overlap_nowhere_and_stand_where_such_a_mark_may(text, marks, translation):
    marks = sorted((mark for mark in marks if mark.start < len(text)), key=lambda mark: mark.start)
    line = Line(text, tuple(marks), 0, 0)
    places = places_of(line, translation)
    assert len(places) == len(line.marks)
    end = (len(translation), len(translation))
    for mark, place in zip(line.marks, places, strict=True):
        assert place in [*candidates_of(line.text, mark, translation), end]
    assert all(first <= last for first, last in places)
    assert all(before[1] <= after[0] for before, after in zip(places, places[1:], strict=False))


def test_marks_of_two_places_share_none_while_there_is_another():
    line = Line("aa bb cc", (Mark(3, 0, "<b>"), Mark(6, 0, "<i>")), 0, 0)
    assert places_of(line, "x y z") == [(2, 2), (4, 4)]
    assert places_of(line, "x y") == [(2, 2), (2, 2)]
    near = Line("aa b ccccccc", (Mark(3, 0, "<b>"), Mark(5, 0, "<i>")), 0, 0)  # in proportion, the same word is nearest
    assert places_of(near, "xx yyyyyyyy z") == [(3, 3), (12, 12)]
    assert places_of(line._replace(marks=(Mark(3, 0, "<b>"), Mark(3, 0, "<i>"))), "x y z") == [(2, 2), (2, 2)]


def test_a_tag_at_the_beginning_of_a_line_stays_there():
    """What begins where the line break ends begins there in the translation too."""
    line = Line("a dog runs on grass", (Mark(10, 1, "\n"), Mark(11, 0, "<i>"), Mark(13, 0, "</i>")), 0, 0)
    assert places_of(line, "A DOG RUNS ON GRASS") == [(10, 11), (11, 11), (13, 13)]


def test_where_a_mark_may_stand_is_decided_by_the_characters_beside_it():
    tag, wide = Mark(1, 0, "<b>"), Mark(1, 0, "\n")
    assert candidates_of("I, x", tag, "A, b") == [(1, 1), (4, 4)]  # at an end of a word, without its comma
    assert candidates_of(" a", tag, "A, b") == [(0, 0), (3, 3)]  # at the beginning of one
    assert candidates_of("ab", tag, "xy") == [(0, 0), (1, 1), (2, 2)]
    assert candidates_of("ab", wide, "x y") == [(1, 2)]
    assert candidates_of("ab", wide, "犬犬a") == [(1, 1)]
    assert candidates_of("ab", Mark(1, 1, "<br>"), "x yz") == [(1, 2)]
    assert candidates_of("ab", Mark(0, 0, "<b>"), "xyz") == [(0, 0)]
    assert candidates_of("ab", Mark(2, 0, "</b>"), "xyz") == [(3, 3)]
    assert [place for place in range(5) if is_end_of_word("a, b", place)] == [1, 2, 4]
    assert not is_end_of_word("ab", 0) and not is_end_of_word(",a", 0)


def test_a_mark_is_inside_if_characters_are_on_both_sides_of_it():
    marks = [Mark(start, length, "") for start in range(4) for length in (0, 1)]
    inside = [(mark.start, mark.length) for mark in marks if is_inside(mark, 0, 3)]
    assert inside == [(1, 0), (1, 1), (2, 0)]


def test_a_mark_stands_alone_between_two_spaces_and_nowhere_else():
    text = "  a  "
    assert [place for place in range(6) if stands_alone(text, Mark(place, 0, ""))] == [1, 4]
    assert not stands_alone(text, Mark(1, 1, ""))


def test_a_mark_that_stands_alone_takes_one_of_the_spaces_with_it():
    tokens = [Token("a ", "a "), Token("<x/>", "", True), Token(" b", " b")]
    line = Passage(tokens).line(0, 4)
    assert (line.text, line.marks) == ("a b", (Mark(2, 0, "<x/> "),))
    two = [*tokens[:2], Token("<y/>", "", True), tokens[2]]
    assert Passage(two).line(0, 4).text == "a  b"  # together, they are a pair around nothing


def test_a_place_in_the_text_is_one_in_what_is_written():
    passage = Passage([Token("<i>", "", True), Token("&fjlig;", "fj"), Token("a", "a"), Token("</i>", "", True)])
    assert [passage.raw_start(place) for place in range(4)] == [3, 10, 10, 15]
    assert [passage.raw_end(place) for place in range(4)] == [0, 10, 10, 11]


def test_each_mark_that_stands_alone_takes_a_space_and_the_later_ones_move():
    tokens = [
        Token("a ", "a "),
        Token("<x/>", "", True),
        Token(" b ", " b "),
        Token("<y/>", "", True),
        Token(" c", " c"),
    ]
    line = Passage(tokens).line(0, 7)
    assert (line.text, line.marks) == ("a b c", (Mark(2, 0, "<x/> "), Mark(4, 0, "<y/> ")))
