"""Where a translation has a text as whole words."""

import re
from collections.abc import Iterator, Sequence

from keras_transformer.pieces.scripts import UNSPACED_CHARACTER
from keras_transformer.text.spans import Span


def occurrences(spans: Sequence[Span], translation: str) -> dict[str, list[tuple[int, int]]]:
    """Return where a translation has the target of each span, as whole words, by target: (start, end), no overlaps."""
    taken, found = bytearray(len(translation)), {}
    for value in sorted({span.target for span in spans}, key=lambda value: (-len(value), value)):
        found[value] = []
        for start, end in places_of(value, translation):
            if not any(taken[start:end]):
                found[value].append((start, end))
                taken[start:end] = b"\1" * (end - start)
    return found


def places_of(value: str, translation: str) -> Iterator[tuple[int, int]]:
    """Yield where a translation has a text as whole words: start and end, which may overlap."""
    start = translation.find(value)
    while start >= 0:
        if is_apart(translation, start, start + len(value)):
            yield start, start + len(value)
        start = translation.find(value, start + 1)


def capitalised(text: str) -> str:
    """Return a text as it may begin a sentence: its first letter in upper case, if that is one letter."""
    first = text[:1].upper()
    return first + text[1:] if len(first) == 1 else text


def places_of_phrase(phrase: str, translation: str) -> Iterator[tuple[int, int]]:
    """Yield where a translation has a phrase: as it is written, and at the beginning with a capital letter too."""
    capital = capitalised(phrase)
    if capital != phrase and translation.startswith(capital) and is_apart(translation, 0, len(capital)):
        yield 0, len(capital)
    yield from places_of(phrase, translation)


def is_apart(text: str, start: int, end: int) -> bool:
    """Return whether text[start:end] is whole words, or what it would be if spaces divided its words."""
    edges = [text[place - 1 : place + 1] for place in (start, end) if 0 < place < len(text)]
    return all(not re.fullmatch(r"\w\w", edge) or UNSPACED_CHARACTER.search(edge) for edge in edges)
