"""Where a translation has a text as whole words."""

from collections.abc import Collection, Iterator, Sequence

from keras_transformer.text.folding import folded
from keras_transformer.text.phrase_index import PhraseIndex
from keras_transformer.text.readings import Readings
from keras_transformer.text.spans import Span
from keras_transformer.text.words import is_apart


def occurrences(spans: Sequence[Span], translation: str) -> dict[str, list[tuple[int, int]]]:
    """Return where a translation has the target of each span, as whole words, by target: (start, end), no overlaps.

    Of those that overlap, the one that begins first is found, the longest of these. What is read as a part of another
    span of its kind, as 5 in 5%, is none.
    """
    kinds = {span.target: span.kind for span in spans}
    found: dict[str, list[tuple[int, int]]] = {value: [] for value in kinds}
    readings, reached = Readings(translation), 0
    for value, place in copies_of(kinds, translation):
        if place[0] >= reached and readings.has(kinds[value], place):
            found[value].append(place)
            reached = place[1]
    return found


def copies_of(values: Collection[str], translation: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield where a translation has texts as whole words, the longest at each place, from left to right."""
    form, of_form = folded(translation), {folded(value).text: value for value in values}
    for start, end in PhraseIndex(of_form).longest(form.text):
        place = form.place(start, end)
        written = translation[slice(*place)]
        yield written if written in values else of_form[form.text[start:end]], place


def places_of(value: str, translation: str) -> Iterator[tuple[int, int]]:
    """Yield where a translation has a text as whole words: start and end, which may overlap."""
    form, value = folded(translation), folded(value).text
    start = form.text.find(value) if value else -1
    while start >= 0:
        if is_apart(form.text, start, start + len(value)):
            yield form.place(start, start + len(value))
        start = form.text.find(value, start + 1)


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
