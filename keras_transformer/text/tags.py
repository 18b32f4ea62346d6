"""Tags of HTML and XML: taken out of a text before it is translated, and put around the words of the translation."""

import bisect
import collections
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from keras_transformer.text.placing import best_run_of
from keras_transformer.text.source import Source
from keras_transformer.text.spans import LEFT, RIGHT, Span
from keras_transformer.text.tag_marks import Mark, Punctuation, punctuation_at, serialised
from keras_transformer.text.unit_chain import Unit

NAME = re.compile(rf"[<{LEFT}]/?([A-Za-z][\w:.-]*|[0-9]+)")
MOST_NESTED = 64  # pairs, one inside the other; what is deeper stands alone
VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())  # HTML closes none of these
BREAKS = frozenset("br div dd dt h1 h2 h3 h4 h5 h6 hr img li ol p table td th tr ul".split())  # they end a word


class Tag(NamedTuple):
    """A tag, or a pair of them with what is inside. Places are those of the text without tags.

    start, end: what it encloses; the same for a tag without partner. divides: whether the tag, and the one that closes
    it, divides two words alone.
    """

    start: int
    end: int
    opening: str
    closing: str
    inside: tuple["Tag", ...]
    divides: tuple[bool, bool]


class Stripped(NamedTuple):
    """A text without its tags: the text, the place of each tag in it, and which tags divide words alone."""

    text: str
    places: list[int]
    divides: list[bool]


def without_tags(text: str, tags: Sequence[Span]) -> Stripped:
    """Take the tags out of a text. A space stands for one that divides two words alone, such as <br>."""
    parts, places, divides, reached, length, last = [], [], [], 0, 0, ""
    for number, tag in enumerate(tags):
        before = text[reached : tag.start]
        parts.append(before)
        reached, length, last = tag.end, length + len(before), before[-1:] or last
        after = tags[number + 1].start if number + 1 < len(tags) else len(text)
        is_dividing = (
            name_of(tag.target) in BREAKS
            and last.strip() != ""
            and (reached < after and text[reached].strip() != "" or reached == after and number + 1 < len(tags))
        )
        places.append(length)
        divides.append(is_dividing)
        if is_dividing:
            parts.append(" ")
            length, last = length + 1, " "
    return Stripped("".join([*parts, text[reached:]]), places, divides)


def name_of(tag: str) -> str:
    match = NAME.match(tag)
    return match[1].lower() if match else ""


def closes(tag: str) -> bool:
    return tag.startswith(("</", f"{LEFT}/"))


def is_whole(tag: str) -> bool:
    """Return whether a tag is neither half of a pair: a comment, <br> or <x/>."""
    return not name_of(tag) or tag.endswith(("/>", f"/{RIGHT}")) or name_of(tag) in VOID


def tree_of(tags: Sequence[Span], stripped: Stripped) -> tuple[Tag, ...]:
    """Return the tags as a tree. A tag that nothing closes, and one that closes nothing, stands alone."""
    partner = partners(tags)

    def trees(first: int, last: int) -> Iterator[Tag]:
        number = first
        while number < last:
            place, text = stripped.places[number], tags[number].target
            closing = partner.get(number)
            if closing is None:
                yield Tag(place, place, text, "", (), (stripped.divides[number], False))
                number += 1
            else:
                inside = tuple(trees(number + 1, closing))
                start, divides = place + stripped.divides[number], (stripped.divides[number], stripped.divides[closing])
                end = max(stripped.places[closing], start)
                yield Tag(start, end, text, tags[closing].target, inside, divides)
                number = closing + 1

    return tuple(trees(0, len(tags)))


def partners(tags: Sequence[Span]) -> dict[int, int]:
    """Return the number of the tag that closes each tag that is closed, but inside of MOST_NESTED others."""
    waiting, found, are_open = [], {}, collections.Counter()
    for number, tag in enumerate(tags):
        text, name = tag.target, name_of(tag.target)
        if closes(text):
            while are_open[name]:
                opened, other = waiting.pop()
                are_open[other] -= 1
                if other == name:
                    found[opened] = number
                    break
        elif name and not is_whole(text):
            waiting.append((number, name))
            are_open[name] += 1
    ends: list[int] = []  # of the pairs around a tag
    for opened, closed in sorted(found.items()):
        while ends and ends[-1] < opened:
            ends.pop()
        if len(ends) == MOST_NESTED:
            del found[opened]
        else:
            ends.append(closed)
    return found


def opening_mark(source: Source, tag: Tag) -> Mark:
    """Return the tag that opens a pair as it stands between its neighbours in the source."""
    text = source.text
    return Mark(
        tag.opening,
        False,
        punctuation_at(text, tag.start, opens=True),
        pair=1,
        divides=tag.divides[0],
        has_space=text[tag.start - 1 : tag.start].isspace(),
        takes_more=not source.words or tag.start <= source.words[0][0],
    )


def closing_mark(source: Source, tag: Tag) -> Mark:
    """Return the tag that closes a pair as it stands between its neighbours in the source."""
    beside = punctuation_at(source.text, tag.end, opens=False)
    takes_more = not source.words or tag.end >= source.words[-1][1]
    return Mark(tag.closing, True, beside, pair=-1, divides=tag.divides[1], takes_more=takes_more)


def lone_mark(text: str, tag: Tag) -> Mark:
    """Return a tag that stands alone as it stands between its neighbours in the source."""
    before, after = punctuation_at(text, tag.start, opens=True), punctuation_at(text, tag.start, opens=False)
    has_space = text[tag.start - 1 : tag.start].isspace()
    is_apart = text[tag.start : tag.start + 1].isspace() and not tag.divides[0]
    is_left = tag.start > 0 and not has_space and not tag.divides[0] and not before.begins_word
    beside = Punctuation() if tag.divides[0] else after if is_left else before
    return Mark(
        tag.opening, is_left, beside, divides=tag.divides[0], has_space=has_space, is_apart=is_apart and not is_left
    )


class Part:
    """A part of a translation and the words of the source to which it belongs: units[low:high] and numbers of words."""

    def __init__(self, units: Sequence[Unit], words: range, low: int, high: int):
        self.words, self.low, self.high = words, low, high
        self._units_of: dict[int, list[int]] = {}  # of each word that is aligned here
        for number in range(low, high):
            for word in units[number].sources:
                if word in words:
                    self._units_of.setdefault(word, []).append(number)
        self._aligned = sorted(self._units_of)
        self._runs: dict[range, tuple[int, int] | None] = {}

    def run_of(self, words: range) -> tuple[int, int] | None:
        """Return the first and last unit of the best run of what is aligned to words; None if nothing is."""
        if words not in self._runs:
            numbers = sorted({number for word in words for number in self._units_of.get(word, ())})
            self._runs[words] = best_run_of(numbers)
        return self._runs[words]

    def place_between(self, word: int, is_behind: bool) -> int:
        """Return the unit before which a tag belongs that stands before a word: ahead of it, or behind the last one."""
        if not self.words or word <= self.words.start:
            return self.low
        if word >= self.words.stop:
            return self.high
        middle = bisect.bisect_left(self._aligned, word)
        ahead = [self._units_of[number][0] for number in self._aligned[middle : middle + 1]]
        behind = [self._units_of[number][-1] + 1 for number in self._aligned[:middle][-1:]]
        return next(iter([*behind, *ahead] if is_behind else [*ahead, *behind]), self.high)


def with_tags(source: Source, tags: Sequence[Tag], units: list[Unit]) -> str:
    """Return the text of units with every tag once, pairs in order and one inside the other as in the source."""
    items: list[Unit | Mark] = []

    def range_of(tag: Tag, part: Part) -> tuple[int, int]:
        own = source.words_of(tag.start, tag.end) if tag.closing else range(0)  # a lone one may be inside a word
        if own and own.start <= part.words.start and part.words.stop <= own.stop:
            return part.low, part.high
        run = part.run_of(own)
        if run is None:
            is_behind = not own and closes(tag.opening)
            place = part.place_between(source.first_word_behind(tag.start), is_behind)
            return place, place
        return run[0], run[1] + 1

    def write(tags: Sequence[Tag], words: range, low: int, high: int) -> None:
        if not tags:
            items.extend(units[low:high])
            return
        part, ranges, reached, floor = Part(units, words, low, high), [], low, low
        for number, tag in enumerate(tags):
            start, end = range_of(tag, part)
            start = max(start, floor)
            end = max(end, start)
            if not tag.closing and not is_whole(tag.opening):
                # the other half is elsewhere: what was before it stays outside of the pair, and what was behind inside
                start = end = floor = max(start, reached)
            ranges.append((start, end, number))
            reached = max(reached, end)
        ranges, reached = sorted(ranges), low
        for start, end, number in ranges:
            tag, start = tags[number], max(start, reached)
            end = max(end, start)
            items.extend(units[reached:start])
            items.append(opening_mark(source, tag) if tag.closing else lone_mark(source.text, tag))
            if tag.closing:
                own = source.words_of(tag.start, tag.end)
                write(tag.inside, range(max(own.start, words.start), min(own.stop, words.stop)), start, end)
                items.append(closing_mark(source, tag))
            reached = end
        items.extend(units[reached:high])

    write(tags, range(len(source.words)), 0, len(units))
    return serialised(items)
