"""Where a translation has a text as whole words."""

from collections.abc import Iterator, Sequence

from keras_transformer.text.folding import folded
from keras_transformer.text.phrase_index import PhraseIndex
from keras_transformer.text.spans import Span
from keras_transformer.text.words import is_apart


def occurrences(spans: Sequence[Span], translation: str) -> dict[str, list[tuple[int, int]]]:
    """Return where a translation has the target of each span, as whole words, by target: (start, end), no overlaps.

    Of those that overlap, the one that begins first is found, the longest of these.
    """
    found: dict[str, list[tuple[int, int]]] = {span.target: [] for span in spans}
    form, values = folded(translation), {folded(value).text: value for value in found}
    reached = 0
    for start, end in PhraseIndex(values).longest(form.text):
        if start >= reached:
            place = form.place(start, end)
            written = translation[slice(*place)]
            found[written if written in found else values[form.text[start:end]]].append(place)
            reached = end
    return found


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
