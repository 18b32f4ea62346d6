"""Spans that a model copied into a translation: which copies stay, and which spans were not copied."""

import bisect
from collections.abc import Iterable, Sequence

from keras_transformer.text.source import Source
from keras_transformer.text.spans import AT_MOST_ONCE, Span
from keras_transformer.text.unit_chain import Unit


def kept(
    source: Source, units: list[Unit], found: dict[str, list[tuple[int, int]]], fixed: Sequence[tuple[int, int]]
) -> tuple[list[Unit], list[Span]]:
    """Mark the units that hold copied spans, take out further copies, and return the spans that were not copied.

    fixed: what else nothing may replace, start and end in the translation.
    """
    ends, reached = [], 0
    for unit in units:
        begin = reached + len(unit.before)
        reached = begin + len(unit.text)
        ends.append((begin, reached))
    fixed = joined_places(fixed)
    missing, cuts, wholes, holding = [], [], [], units_at(fixed, ends)
    spans_of: dict[str, list[Span]] = {}
    for span in source.spans:
        spans_of.setdefault(span.target, []).append(span)
    for value, places in found.items():
        copies = Copies(units, [(place, units_at([place], ends)) for place in places])
        waiting = []
        for span in spans_of[value]:
            if not copies.take_aligned(source.words_of(span.start, span.end)):
                waiting.append(span)
        missing += waiting[copies.take(len(waiting)) :]
        if any(span.kind in AT_MOST_ONCE for span in spans_of[value]):
            cuts += copies.left()
        else:
            copies.take(len(places))
        wholes += copies.taken_units
        holding.update(*copies.taken_units)
    cuts.sort()
    wholes.extend(units_at([place], ends) for place in fixed)
    going_on = {number for touched in wholes for number in touched if number + 1 in touched}
    marked, passed = [], 0
    for number, (unit, (begin, end)) in enumerate(zip(units, ends, strict=True)):
        parts, reached = [], begin
        while passed < len(cuts) and cuts[passed][1] <= begin:
            passed += 1
        for place in range(passed, bisect.bisect_left(cuts, end, key=lambda cut: cut[0])):
            start, stop = cuts[place]
            parts.append(unit.text[reached - begin : max(start, begin) - begin])
            reached = min(stop, end)
        text = "".join([*parts, unit.text[reached - begin :]])
        marked.append(unit._replace(text=text, is_placed=number in holding, goes_on=number in going_on))
    return [unit for unit in marked if unit.text], sorted(missing)


class Copies:
    """Where a translation has a span, each place with the units that it touches, and which of them are taken."""

    def __init__(self, units: Sequence[Unit], places: Sequence[tuple[tuple[int, int], set[int]]]):
        self.places, self.taken_units = places, []
        self._is_taken, self._first = [False] * len(places), 0
        self._of_word: dict[int, list[int]] = {}  # of the source: which places are aligned to it, the last one first
        for number, (_, touched) in reversed(list(enumerate(places))):
            for word in frozenset().union(*(units[unit].sources for unit in touched)):
                self._of_word.setdefault(word, []).append(number)

    def _take(self, number: int) -> None:
        self._is_taken[number] = True
        self.taken_units.append(self.places[number][1])

    def take_aligned(self, words: range) -> bool:
        """Take the first place that is aligned to one of these words, and return whether there is one."""
        waiting = [self._of_word[word] for word in words if word in self._of_word]
        for of_word in waiting:
            while of_word and self._is_taken[of_word[-1]]:
                of_word.pop()
        if first := [of_word[-1] for of_word in waiting if of_word]:
            self._take(min(first))
        return bool(first)

    def take(self, most: int) -> int:
        """Take the first places of those that are left, and return how many there are."""
        count = 0
        while count < most and self._first < len(self.places):
            if not self._is_taken[self._first]:
                self._take(self._first)
                count += 1
            self._first += 1
        return count

    def left(self) -> list[tuple[int, int]]:
        return [place for (place, _), is_taken in zip(self.places, self._is_taken, strict=True) if not is_taken]


def joined_places(places: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return places of a text from left to right, those that overlap as one."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(places):
        if found and start < found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def units_at(places: Iterable[tuple[int, int]], ends: Sequence[tuple[int, int]]) -> set[int]:
    """Return the numbers of the units, each with its begin and end, that places of a text touch."""
    touched: set[int] = set()
    for start, stop in places:
        first = bisect.bisect_right(ends, start, key=lambda unit: unit[1])
        touched.update(range(first, bisect.bisect_left(ends, stop, key=lambda unit: unit[0])))
    return touched
