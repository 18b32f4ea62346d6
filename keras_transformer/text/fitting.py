"""Sentences that are too long for a model, split at good places: after clauses, else between words."""

import re
from collections.abc import Callable, Iterator, Sequence

from keras_transformer.text.sentences import Span, trimmed

PLACES = (  # after which a sentence is split, best first; a place counts if it is in the middle half
    re.compile(r"[;:\u2026\uff1b\uff1a\u061b](?=\s|[^\W\d])|\s[-\u2013\u2014](?=\s)"),
    re.compile(r"[,\uff0c\u3001\u060c)\]](?=\s|[^\x00-\u02ff])"),
    re.compile(r"\s"),
)


def fitting(text: str, spans: Sequence[Span], are_too_long: Callable[[list[Span]], Sequence[bool]]) -> list[Span]:
    """Return the sentences of a text, those that are too long in parts that are not, or that cannot be split."""
    spans, unknown = list(spans), set(spans)
    while unknown:
        ordered = sorted(unknown)
        too_long = {span for span, is_long in zip(ordered, are_too_long(ordered), strict=True) if is_long}
        parts = {span: halves(text, *span) for span in too_long}
        spans = [part for span in spans for part in parts.get(span, [span])]
        unknown = {part for span, of_span in parts.items() for part in of_span if part != span}
    return spans


def halves(text: str, start: int, end: int) -> list[Span]:
    """Return a sentence in two parts, at the best place near its middle; as it is if it is one grapheme."""
    place = middle_of(text, start, end)
    parts = [trimmed(text, start, place), trimmed(text, place, end)]
    return [part for part in parts if part[0] < part[1]]


def middle_of(text: str, start: int, end: int) -> int:
    """Return the best place at which to split a sentence: at punctuation, at a space, or between two graphemes."""
    middle, quarter = (start + end) // 2, (end - start) // 4
    for pattern in PLACES[:-1]:
        found = [match.end() for match in pattern.finditer(text, start + quarter, end - quarter)]
        if found:
            return min(found, key=lambda place: abs(place - middle))
    found = [match.end() for match in PLACES[-1].finditer(text, start + 1, end - 1)]
    if found:
        return min(found, key=lambda place: abs(place - middle))
    places = [start + match.end() for match in graphemes(text[start:end])][:-1]
    return next((place for place in places if place >= middle), places[-1] if places else end)


def graphemes(text: str) -> Iterator:
    """Yield a match for each character as a reader sees it: a letter with its accents or vowels, an emoji, a flag."""
    import regex  # here, since it is an extra

    return regex.finditer(r"\X", text)
