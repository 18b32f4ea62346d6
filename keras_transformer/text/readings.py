"""What a text is read to have: where its spans are, and what they are read as one with."""

import bisect
import functools
from collections.abc import Iterator

from keras_transformer.pieces.scripts import UNSPACED_CHARACTER
from keras_transformer.text.spans import NUMBERS, PATTERNS, TAGS, numbers_of, places_of_kind
from keras_transformer.text.whole_numbers import NUMBER, SIGN_AND_SPACE, SPACE_AND_SIGN

READ = (*(kind for kind in PATTERNS if kind != TAGS), NUMBERS)  # tags have a place of their own: text/tags.py
Place = tuple[int, int]  # of a text: start and end


class Readings:
    """Where a text is read to have spans of each kind."""

    def __init__(self, text: str):
        self.text = text
        self._of_kind = functools.cache(self._read)

    def has(self, kind: str, place: Place) -> bool:
        """Return whether text[start:end] is read as a whole span of a kind; of a term or a tag it is.

        A number is so too inside of brackets, and beside a currency, per cent or degrees with a space between.
        """
        if kind not in READ:
            return True
        if kind == NUMBERS:
            return place in self._numbers
        return all(other == place for other in self._touching(kind, place))

    def touching(self, place: Place, without: str) -> Iterator[tuple[str, Place]]:
        """Yield what is read as spans of other kinds at a place of a text: kind and place."""
        for kind in PATTERNS:
            if kind != without:
                yield from ((kind, other) for other in self._touching(kind, place))

    def around(self, kind: str, place: Place) -> tuple[str, str]:
        """Return what is read together with text[start:end] before it and behind it, that a span of a kind has not."""
        touching = [place, *self._touching(kind, place), *(other for _, other in self.touching(place, kind))]
        start, end = min(each[0] for each in touching), max(each[1] for each in touching)
        before, behind = self.text[start : place[0]], self.text[place[1] : end]
        if kind == NUMBERS:
            left = "" if SIGN_AND_SPACE.fullmatch(before) else before
            right = "" if SPACE_AND_SIGN.fullmatch(behind) else behind
            before, behind = (left, right) if left or right else (before, behind)
        if not before and not behind:  # it is divided
            return self.text[: place[0]][-1:].strip(), self.text[place[1] :][:1].strip()
        return before, behind

    def _read(self, kind: str) -> list[Place]:
        """Return where a pattern of a kind stands, from left to right: of numbers, what is read as a whole."""
        if kind == NUMBERS:
            return [found.span() for found in NUMBER.finditer(UNSPACED_CHARACTER.sub(" ", self.text))]
        return list(places_of_kind(kind, self.text))

    @functools.cached_property
    def _numbers(self) -> set[Place]:
        found = set()
        for start, end in numbers_of(self.text):
            found.add((start, end))
            if self.text[start] in "([":
                found.add((start := start + 1, end := end - 1))
            sign, space = SIGN_AND_SPACE.match(self.text, start, end), SPACE_AND_SIGN.search(self.text, start, end)
            begin, stop = sign.end() if sign else start, space.start() if space else end
            found.update({(begin, end), (start, stop), (begin, stop)})
        return found

    def _touching(self, kind: str, place: Place) -> Iterator[Place]:
        places = self._of_kind(kind)
        number = bisect.bisect_right(places, place[0], key=lambda each: each[1])
        while number < len(places) and places[number][0] < place[1]:
            yield places[number]
            number += 1
