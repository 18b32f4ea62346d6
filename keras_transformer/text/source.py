"""A line as it is translated: its text without tags, its spans, and its words."""

import bisect
import dataclasses
import functools
import re
from collections.abc import Callable, Sequence

from keras_transformer.text.spans import Span
from keras_transformer.text.words import LETTER

WORD = re.compile(r"\S+")


@dataclasses.dataclass(frozen=True)
class Source:
    """A text without tags, and its spans with their places in it."""

    text: str
    spans: tuple[Span, ...]

    @functools.cached_property
    def words(self) -> list[tuple[int, int]]:
        """Where each word begins and ends."""
        return [match.span() for match in WORD.finditer(self.text)]

    def words_of(self, start: int, end: int) -> range:
        """Return the numbers of the words that text[start:end] touches."""
        first = bisect.bisect_right(self.words, start, key=lambda word: word[1])
        return range(first, max(bisect.bisect_left(self.words, end, key=lambda word: word[0]), first))

    def first_word_behind(self, place: int) -> int:
        """Return the number of the first word whose letters stand behind a place."""
        number = bisect.bisect_right(self.words, place, key=lambda word: word[1])
        if number == len(self.words) or self.words[number][0] >= place:
            return number
        letter = bisect.bisect_left(self._letters, self.words[number][0])
        return number + (letter < len(self._letters) and self._letters[letter] < place)

    @functools.cached_property
    def _letters(self) -> list[int]:
        return [match.start() for match in LETTER.finditer(self.text)]

    def between_neighbours(self, start: int, end: int) -> tuple[str, str]:
        """Return what the words of text[start:end] have before it and behind it, up to other spans."""
        words = self.words_of(start, end)
        before = bisect.bisect_right(self.spans, start, key=lambda span: span.end)
        after = bisect.bisect_left(self.spans, end, key=lambda span: span.start)
        begin = max([self.words[words[0]][0], *(span.end for span in self.spans[max(before - 1, 0) : before])])
        stop = min([self.words[words[-1]][1], *(span.start for span in self.spans[after : after + 1])])
        return self.text[begin:start], self.text[end:stop]

    @functools.cached_property
    def outside(self) -> str:
        """The text with a space for each span."""
        return replaced(self.text, self.spans, lambda span: " ")


def replaced(text: str, spans: Sequence[Span], of_span: Callable[[Span], str]) -> str:
    """Return a text with what a function returns for each span in its place."""
    parts, reached = [], 0
    for span in spans:
        parts += [text[reached : span.start], of_span(span)]
        reached = span.end
    return "".join([*parts, text[reached:]])
