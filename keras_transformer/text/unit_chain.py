"""The units of a translation in their order, into which spans are put: a span costs the units that it touches alone."""

import bisect
from collections.abc import Iterator, Sequence
from typing import NamedTuple

MOST_NEAR = 50  # units on either side of a place in which a term is looked for in another form


class Unit(NamedTuple):
    """A word of a translation: the white space before it, its text, the words of the source that it is aligned to."""

    before: str
    text: str
    sources: frozenset[int]
    is_placed: bool = False  # it holds a span, so nothing may replace it
    goes_on: bool = False  # a required phrase goes on with the next unit, so nothing may stand between them


class Link:
    """A unit in a chain. number: of a unit that the translation had. first, last: what stands for it, or itself."""

    __slots__ = ("unit", "number", "before", "after", "first", "last")
    before: "Link"
    after: "Link"

    def __init__(self, unit: Unit, number: int = -1):
        self.unit, self.number, self.first, self.last = unit, number, self, self

    @property
    def is_free(self) -> bool:
        """Whether it is in the chain, and may be replaced."""
        return self.first is self and not self.unit.is_placed


Run = tuple[Link, Link]  # first and last


class UnitChain:
    """A chain of units. Spans are put into it from left to right in the source, all of a word at once."""

    def __init__(self, units: Sequence[Unit]):
        self.end = Link(Unit("", "", frozenset(), is_placed=True))
        join(self.end, self.end)
        self._links_of: dict[int, list[Link]] = {}  # of each word of the source, what the translation had
        self._reached: tuple[int, Link] | None = None  # the last word of what was put last, and the last link of it
        for number, unit in enumerate(units):
            link = Link(unit, number)
            join(self.end.before, link)
            join(link, self.end)
            for word in unit.sources:
                self._links_of.setdefault(word, []).append(link)
        self._aligned = sorted(self._links_of)

    def __iter__(self) -> Iterator[Link]:
        link = self.end.after
        while link is not self.end:
            yield link
            link = link.after

    def units(self) -> list[Unit]:
        return [link.unit for link in self]

    def best_run(self, words: range) -> Run | None:
        """Return the run with the most units that are aligned to words, less the others in it, but none that is placed.

        It is the first and shortest of its kind; None if no unit is aligned to them.
        """
        aligned = {link.number: link for word in words for link in self._links_of.get(word, ()) if link.is_free}
        best, run, total, start, last = 0, None, 0, self.end, self.end
        for _, link in sorted(aligned.items()):
            while total > 0 and last.after is not link:
                last, total = last.after, 0 if last.after.unit.is_placed else total - 1
            if total <= 0:
                total, start = 0, link
            total, last = total + 1, link
            if total > best:
                best, run = total, (start, link)
        return run

    def near(self, place: Link) -> Iterator[Link]:
        """Yield the link at a place, and those before and behind it, the nearest first."""
        before, after = place.before, place
        for _ in range(MOST_NEAR):
            if after is not self.end:
                yield after
                after = after.after
            if before is not self.end:
                yield before
                before = before.before

    def place_beside(self, words: range) -> Link:
        """Return the link before which words of the source belong that nothing is aligned to; `end` for behind all."""
        place = self._place_by_neighbours(words)
        while place is not self.end and place.before.unit.goes_on:
            place = place.after
        return place

    def _place_by_neighbours(self, words: range) -> Link:
        """Return the link behind what the last of the words is aligned to, else what their nearest neighbours are."""
        first, last = words[0], words[-1]
        if last in self._links_of:
            return self._links_of[last][-1].last.after
        before, after = bisect.bisect_left(self._aligned, first), bisect.bisect_right(self._aligned, last)
        behind = [(word, self._links_of[word][-1].last) for word in self._aligned[max(before - 1, 0) : before]]
        if self._reached and self._reached[0] < first and (not behind or self._reached[0] >= behind[0][0]):
            behind = [self._reached]
        ahead = [(word, self._links_of[word][0].first) for word in self._aligned[after : after + 1]]
        if behind and (not ahead or first - behind[0][0] <= ahead[0][0] - last):
            return behind[0][1].after
        return ahead[0][1] if ahead else self.end

    def replace(self, run: Run, units: Sequence[Unit], words: range) -> None:
        """Put units that stand for words of the source in place of a run."""
        first, last = run
        replaced = list(between(first, last))
        new = self._insert(first.before, last.after, units)
        for link in replaced:
            link.first, link.last = new
        others = self._links_of.get(words[-1], [last])[-1]
        self._reached = words[-1], others.last if others.number > last.number else new[1]

    def insert(self, place: Link, units: Sequence[Unit], words: range) -> None:
        """Put units that stand for words of the source before a place."""
        self._reached = words[-1], self._insert(place.before, place, units)[1]
        if place is not self.end:
            place.unit = place.unit._replace(before=place.unit.before or " ")

    def _insert(self, before: Link, after: Link, units: Sequence[Unit]) -> Run:
        links = [Link(unit) for unit in units]
        for left, right in zip([before, *links], [*links, after], strict=True):
            join(left, right)
        return links[0], links[-1]


def between(first: Link, last: Link) -> Iterator[Link]:
    """Yield the links from a first to a last one, both included."""
    while first is not last:
        yield first
        first = first.after
    yield last


def join(left: Link, right: Link) -> None:
    left.after, right.before = right, left
