"""A passage: a text in a file, what it says and how it is written there.

`A <b>dog</b> &amp; a cat` says `A dog & a cat`. A translation goes back between what is not text: tags and line breaks
inside a sentence are marks. If whatever translates aligns words, tags are around the words to which those inside are
aligned (marks.py). Line breaks, and tags otherwise, stand where they stood in proportion, between two words.
"""

import bisect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from keras_transformer.pieces.scripts import breaks_anywhere
from keras_transformer.text.marks import are_in_order, paired, with_signs
from keras_transformer.text.tag_marks import kinds


class Inner(NamedTuple):
    """A text inside a mark, such as the `alt` of a picture: it is raw[start:end] of its token.

    quote: what stands around its translation if that is another text, and does not stand around it yet.
    """

    start: int
    end: int
    passage: "Passage"
    quote: str = ""


class Token(NamedTuple):
    """A part of a passage. raw: as it is written; text: what it says; is_mark: that is nothing, or just a space."""

    raw: str
    text: str
    is_mark: bool = False
    inner: tuple[Inner, ...] = ()

    def with_inner(self, texts: Iterator[str]) -> "Token":
        """Return the token with other texts inside of it, as they are written there."""
        parts, reached = [], 0
        for start, end, _, quote in self.inner:
            before, text = self.raw[start:end], next(texts)
            parts += [self.raw[reached:start], text if text == before else f"{quote}{text}{quote}"]
            reached = end
        return Token("".join([*parts, self.raw[reached:]]), self.text, self.is_mark)


Piece = tuple[int, int] | str  # of a passage that is made of another one: text[start:end] of it, or another text


class Mark(NamedTuple):
    """What stands inside a sentence without being text: at `start` of its line, where it takes `length` characters."""

    start: int
    length: int  # 0, or 1 if a space stands for it
    raw: str


class Line(NamedTuple):
    """A sentence as the model reads it, what stands inside of it, and where it begins and ends in `raw`."""

    text: str
    marks: tuple[Mark, ...]
    raw_start: int
    raw_end: int

    @property
    def with_signs(self) -> str:
        """The text with a sign for each mark that is no white space: see marks.py."""
        return with_signs(self.text, [(mark.start, mark.raw) for mark in self.marks])


LINE_BREAK = re.compile(r"(?<![ \t])[ \t]*+(?:(?:\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])[ \t]*+)++")  # or several


class Passage:
    """The tokens of a text, and how a translation is written in its place.

    raw, text: what the tokens are together. written: returns how a text is written here, such as with `&amp;` for `&`.
    where: for logs, the file and the line or unit.
    """

    def __init__(self, tokens: Iterable[Token], written: Callable[[str], str] = str, where: str = "The text"):
        self.written, self.where, self._tokens = written, where, list(tokens)
        self._starts, self._ends, marks, reached, length = [], [], [], 0, 0  # places in `raw` of each character
        self._places = []  # of each mark in `raw`
        raws, texts = [], []
        for token in self._tokens:
            end = reached + len(token.raw)
            if token.raw == token.text:
                self._starts += range(reached, end)
                self._ends += range(reached + 1, end + 1)
            elif token.text:
                self._starts += [reached, *[end] * (len(token.text) - 1)]
                self._ends += [end] * len(token.text)
            if token.is_mark:
                marks.append(Mark(length, len(token.text), token.raw))
                self._places.append(reached)
            raws.append(token.raw)
            texts.append(token.text)
            reached, length = end, length + len(token.text)
        self.raw, self.text, self._marks = "".join(raws), "".join(texts), marks
        self._mark_starts = [mark.start for mark in marks]

    @property
    def inner(self) -> list["Passage"]:
        """The texts inside of the marks of this one, such as in attributes."""
        return [inner.passage for token in self._tokens for inner in token.inner]

    @property
    def texts(self) -> list[str]:
        return [self.text, *(passage.text for passage in self.inner)]

    def with_inner(self, texts: Iterator[str]) -> "Passage":
        """Return the passage with other texts inside of its marks, as they are written there."""
        return Passage([token.with_inner(texts) for token in self._tokens], self.written, self.where)

    def made_of(self, pieces: Iterable[Piece]) -> "Passage":
        """Return the passage of these pieces. A mark goes with the character behind it."""
        tokens = ([Token(piece, piece)] if isinstance(piece, str) else self._tokens_in(*piece) for piece in pieces)
        return Passage(itertools.chain.from_iterable(tokens), self.written, self.where)

    def _tokens_in(self, start: int, end: int) -> Iterator[Token]:
        """Yield the tokens of text[start:end], with the marks before each character; at the end those behind it too."""
        begin, is_last = 0, end == len(self.text)
        for token in self._tokens:
            stop = begin + len(token.text)
            if begin < end and stop > start and token.raw == token.text:
                part = token.text[max(start - begin, 0) : end - begin]
                yield token._replace(raw=part, text=part)
            elif start <= begin < end or (is_last and begin == end):
                yield token
            begin = stop

    def raw_start(self, place: int) -> int:
        """Where text[place:] begins in `raw`: after the marks before it."""
        return self._starts[place] if place < len(self.text) else len(self.raw)

    def raw_end(self, place: int) -> int:
        """Where text[:place] ends in `raw`: before the marks after it."""
        return self._ends[place - 1] if place else 0

    def has_marks(self, start: int, end: int) -> bool:
        """Return whether something stands inside text[start:end] that is neither text nor white space."""
        return any(self._marks[number].raw.strip() for number in self._inside(start, end))

    def _inside(self, start: int, end: int) -> list[int]:
        """Return the numbers of the marks inside text[start:end]."""
        first, last = bisect.bisect_right(self._mark_starts, start), bisect.bisect_left(self._mark_starts, end)
        return [number for number in range(first, last) if is_inside(self._marks[number], start, end)]

    def line(self, start: int, end: int, with_pairs: bool = False) -> Line:
        """Return the sentence text[start:end]: what stands at its ends is not part of it.

        with_pairs: but for one half of a pair of tags whose other half is part of it.
        """
        numbers = self._inside(start, end)
        raw_start, raw_end = self.raw_start(start), self.raw_end(end)
        if with_pairs and numbers:
            numbers = self._with_partners(numbers, start, end)
            last = self._places[numbers[-1]] + len(self._marks[numbers[-1]].raw)
            raw_start, raw_end = min(raw_start, self._places[numbers[0]]), max(raw_end, last)
        marks = [self._marks[number]._replace(start=self._marks[number].start - start) for number in numbers]
        text, marks = with_breaks(*without_doubled_spaces(self.text[start:end], marks), self.written)
        return Line(text, tuple(sorted(marks, key=lambda mark: mark.start)), raw_start, raw_end)

    def _with_partners(self, numbers: Sequence[int], start: int, end: int) -> list[int]:
        """Return the marks of a sentence, by number, and those at its ends that are one half of a pair with them."""
        first, last = numbers[0], numbers[-1] + 1
        while first > 0 and self._marks[first - 1].length == 0 and self._marks[first - 1].start == start:
            first -= 1
        while last < len(self._marks) and self._marks[last].length == 0 and self._marks[last].start == end:
            last += 1
        closing = {
            first + opened: first + closed
            for opened, closed in paired([mark.raw for mark in self._marks[first:last]]).items()
        }
        opening = {closed: opened for opened, closed in closing.items()}
        begin, stop = numbers[0], numbers[-1] + 1
        while stop < last and opening.get(stop, -1) >= begin:
            stop += 1
        while begin > first and closing.get(begin - 1, last) < stop:
            begin -= 1
        return list(range(begin, stop))

    def rendered(self, line: Line, translation: str, places: Mapping[int, int]) -> str:
        """Return how the translation of a sentence is written. What is equal keeps its notation.

        places: where marks stand in the translation, by number, from left to right. The others stand in proportion, and
        so do all if those that must keep their order do not.
        """
        if translation == line.text:
            return self.raw[line.raw_start : line.raw_end]
        if not are_in_order(places, [mark.raw.strip() for mark in line.marks]):
            places = {}
        others = line._replace(marks=tuple(mark for n, mark in enumerate(line.marks) if n not in places))
        put = [((place, place), line.marks[number].raw) for number, place in places.items()]
        put += [(place, mark.raw) for mark, place in zip(others.marks, places_of(others, translation), strict=True)]
        parts, reached = [], 0
        for (first, last), raw in sorted(put, key=lambda each: each[0]):
            parts += [self.written(translation[reached:first]), raw]
            reached = last
        return "".join([*parts, self.written(translation[reached:])])


def without_doubled_spaces(text: str, marks: Sequence[Mark]) -> tuple[str, list[Mark]]:
    """Return a text without the second of two spaces around a mark that stands alone; it goes with the mark."""
    parts, reached, removed, moved = [], 0, 0, []
    for number, mark in enumerate(marks):
        beside = [other.start for other in (*marks[max(number - 1, 0) : number], *marks[number + 1 : number + 2])]
        is_alone = stands_alone(text, mark) and mark.start not in beside
        moved.append(mark._replace(start=mark.start - removed, raw=mark.raw + " " * is_alone))
        if is_alone:
            parts.append(text[reached : mark.start])
            reached, removed = mark.start + 1, removed + 1
    return "".join([*parts, text[reached:]]), moved


def with_breaks(text: str, marks: Sequence[Mark], written: Callable[[str], str]) -> tuple[str, list[Mark]]:
    """Return a text with a space, or nothing, in place of each line break, and its marks, the line breaks among them.

    Spaces of marks that stand inside of a line break are part of it. written: returns how a line break is written.
    """
    breaks = list(LINE_BREAK.finditer(text))
    shown, following, reached = [], "", len(text)  # following: the character after a line break, as it is shown
    for found in reversed(breaks):
        following = text[found.end() : reached][:1] or following
        is_wide = breaks_anywhere(text[found.start() - 1]) and breaks_anywhere(following or " ")
        shown.append("" if is_wide else " ")
        following, reached = shown[-1] or following, found.start()
    parts, kept, of_breaks, waiting, reached, moved = [], [], [], list(reversed(marks)), 0, 0

    def take_before(place: int) -> None:
        while waiting and waiting[-1].start < place:
            mark = waiting.pop()
            kept.append(mark._replace(start=mark.start - moved))

    for found, space in zip(breaks, reversed(shown), strict=True):
        start, end = found.span()
        take_before(start)
        raw, inside = [], start
        while waiting and waiting[-1].start < end:
            mark = waiting.pop()
            if mark.length:
                raw += [written(text[inside : mark.start]), mark.raw]
                inside = mark.start + mark.length
            else:
                kept.append(mark._replace(start=min(mark.start, start + len(space)) - moved))
        raw.append(written(text[inside:end]))
        of_breaks.append(Mark(start - moved, len(space), "".join(raw)))
        parts += [text[reached:start], space]
        reached, moved = end, moved + end - start - len(space)
    take_before(len(text) + 1)
    return "".join([*parts, text[reached:]]), [*kept, *reversed(of_breaks)]


def is_inside(mark: Mark, start: int, end: int) -> bool:
    return start < mark.start and mark.start + mark.length < end


def stands_alone(text: str, mark: Mark) -> bool:
    """Return whether a mark has a space on both sides, such as <code>x</code> where a word could be."""
    is_within = 0 < mark.start < len(text)
    return mark.length == 0 and is_within and text[mark.start - 1] == text[mark.start] == " "


def places_of(line: Line, translation: str) -> list[tuple[int, int]]:
    """Return which part of a translation, (start, end), each mark of a line takes the place of, in their order.

    A mark that began, ended or divided words does so again, as near as possible to where it stood in proportion.
    """
    places, previous, reached = [], -1, 0  # previous: where the last mark ends in the line; reached: in the translation
    known: dict[tuple, Sequence[tuple[int, int]]] = {}  # the places of marks that stand alike
    for mark in line.marks:
        ideal, is_space = mark.start * len(translation) / len(line.text), mark.length > 0 or mark.raw.isspace()
        is_end = mark.length == 0 and mark.start in (0, len(line.text))
        alike = mark.start if is_end else (is_space, line.text[mark.start - 1], line.text[mark.start : mark.start + 1])
        if (key := (is_end, alike)) not in known:
            known[key] = sorted(candidates_of(line.text, mark, translation))
        candidates = known[key]
        first = bisect.bisect_left(candidates, (reached, 0))
        if places and mark.start != previous:  # behind the last one, if it can be
            behind = bisect.bisect_left(candidates, (reached + 1, 0))
            first = behind if behind < len(candidates) else first
        nearest = bisect.bisect_left(candidates, (ideal, 0), first)
        near = candidates[max(nearest - 1, first) : nearest + 1] or [(len(translation), len(translation))]
        place = min(near, key=lambda place: (abs(place[0] - ideal), place[0] == place[1]))  # rather at a space
        places.append(place)
        previous, reached = mark.start + mark.length, place[1]
    return places


def candidates_of(text: str, mark: Mark, translation: str) -> Sequence[tuple[int, int]]:
    """Return the places of a translation at which a mark may stand as it stands in the text."""
    if mark.length == 0 and mark.start in (0, len(text)):
        place = len(translation) if mark.start else 0
        return [(place, place)]
    before, after = text[mark.start - 1], text[mark.start : mark.start + 1]
    everywhere = range(len(translation) + 1)
    if mark.length or mark.raw.isspace():
        spaces = [(i, i + 1) for i, character in enumerate(translation) if character == " "]
        return spaces + [
            (i, i) for i in range(1, len(translation)) if all(map(breaks_anywhere, translation[i - 1 : i + 1]))
        ]
    sides = kind_of(before), kind_of(after)
    if {"(", '"'} & set(sides) or sides[0] not in ("a", " "):  # between the same punctuation, if there is any
        alike = [i for i in everywhere[1:] if (kind_of(translation[i - 1]), kind_of(translation[i : i + 1])) == sides]
        if alike:
            return [(i, i) for i in alike]
    if before.isspace():
        return [(i, i) for i in everywhere if i == 0 or translation[i - 1].isspace()]
    if not after.isalnum():
        ends = [i for i in everywhere if is_end_of_word(translation, i)]
        of_letters = [i for i in ends if before.isalnum() and not after.isspace() and translation[i - 1 : i].isalnum()]
        return [(i, i) for i in of_letters or ends]  # of a word without its punctuation
    return [(i, i) for i in everywhere]


def kind_of(character: str) -> str:
    """Return a sign for a character, the same for all letters, all brackets, all white space and so on; "" for none."""
    return "a" if character.isalnum() else " " if character.isspace() else "".join(kinds(character))


def is_end_of_word(text: str, place: int) -> bool:
    if place == len(text) or text[place].isspace():
        return True
    return place > 0 and text[place - 1].isalnum() and not text[place].isalnum()
