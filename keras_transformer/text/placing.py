"""Puts protected spans into a translation: kept if the model copied them, else in place of what they are aligned to."""

import collections
import itertools
import os
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from keras_transformer.pieces.scripts import UNSPACED_CHARACTER
from keras_transformer.text.copies import kept
from keras_transformer.text.occurrences import occurrences, places_of_phrase
from keras_transformer.text.source import WORD, Source
from keras_transformer.text.spans import AT_MOST_ONCE, TERM, Span
from keras_transformer.text.unit_chain import Link, Run, Unit, UnitChain, between
from keras_transformer.text.words import LETTER

Alignment = Sequence[tuple[int, int]]  # numbers of a word of the source and of one of the translation, from 0

STOPS = ".,;:!?…。、，！？；：．｡､؟،؛۔।॥"
OPENING = "(\"'„“‘«‹¿¡[‚»›（［「『《〈【〔"
FEWEST_ALIKE, MOST_OF_ENDING = 4, 3  # letters at the begin and at the end of two forms of a word
LONGEST_REPLACED = 30  # characters that replaced words may have beyond three times the span: see `is_replaceable`


def alignment_of(text: str) -> list[tuple[int, int]]:
    """Return the pairs of numbers in "0-0 1-2", as a served graph writes an alignment."""
    return [(int(source), int(target)) for source, _, target in (pair.partition("-") for pair in text.split())]


class Placed(NamedTuple):
    """A translation as units, and the spans that have no place in it."""

    units: list[Unit]
    unplaced: list[Span]


def units_of(translation: str, alignment: Alignment) -> list[Unit]:
    """Return the words of a translation with what they are aligned to."""
    sources, units, reached = {}, [], 0
    for source, target in alignment:
        sources.setdefault(target, set()).add(source)
    for number, match in enumerate(WORD.finditer(translation)):
        units.append(Unit(translation[reached : match.start()], match[0], frozenset(sources.get(number, ()))))
        reached = match.end()
    return units


def text_of(units: Iterable[Unit]) -> str:
    return "".join(unit.before + unit.text for unit in units)


def is_through(source: Source, translation: str) -> bool:
    """Return whether a translation has every span as often as the source, and no further copy of AT_MOST_ONCE."""
    found = occurrences(source.spans, translation)
    strict = {span.target for span in source.spans if span.kind in AT_MOST_ONCE}
    wanted = collections.Counter(span.target for span in source.spans)
    return all(
        len(places) == wanted[value] or (len(places) > wanted[value] and value not in strict)
        for value, places in found.items()
    )


def placed(source: Source, translation: str, alignment: Alignment, required: Sequence[str] = ()) -> Placed:
    """Return a translation with each span: where the model copied it, else where it is aligned.

    A further copy of a span of AT_MOST_ONCE is taken out. Without an alignment a span that was not copied has no place.
    No span replaces a phrase that is `required`.
    """
    units = units_of(translation, alignment)
    fixed = [place for phrase in required for place in places_of_phrase(phrase, translation)]
    units, missing = kept(source, units, occurrences(source.spans, translation), fixed)
    if not alignment and units:
        return Placed(units, missing)
    chain = UnitChain(units)
    for group in groups(source, missing):
        put(source, chain, group)
    return Placed(chain.units(), [])


def groups(source: Source, spans: Sequence[Span]) -> list[list[Span]]:
    """Return spans that stand in one word, such as {0}/{1}, together."""
    together = []
    for span in spans:
        if together and not re.search(r"\s", source.text[together[-1][-1].end : span.start]):
            together[-1].append(span)
        else:
            together.append([span])
    return together


def put(source: Source, chain: UnitChain, group: list[Span]) -> None:
    """Put spans of one word in place of what they are aligned to, or beside neighbours."""
    start, end = group[0].start, group[-1].end
    words, (prefix, suffix) = source.words_of(start, end), source.between_neighbours(start, end)
    signs = [source.text[left.end : right.start] for left, right in itertools.pairwise(group)]
    value = "".join(itertools.chain(*zip((span.target for span in group), [*signs, ""], strict=True)))
    if UNSPACED_CHARACTER.search(prefix + suffix):  # the word is a sentence, and its translation none of the span
        insert(chain, chain.place_beside(words), value, suffix, words)
        return
    if LETTER.search(prefix + suffix):  # {count}-fold: a part of a word cannot be translated alone
        value, prefix, suffix = prefix + value + suffix, "", ""
    run = chain.best_run(words)
    if run is None and group[0].kind == TERM:
        run = run_alike(chain, group[0].target, chain.place_beside(words))
    if run is None or not is_replaceable(source, chain, run, words, value):
        insert(chain, chain.place_beside(words), value, suffix, words)
        return
    first, last = run
    head, tail = leading(first.unit.text, prefix, value), trailing(last.unit.text, suffix, value)
    sources = frozenset(words).union(*(link.unit.sources for link in between(first, last)))
    chain.replace(run, new_units(first.unit.before, head + value + tail, sources), words)


def best_run_of(numbers: Sequence[int]) -> tuple[int, int] | None:
    """Return the first and last number of the run that has the most of some numbers, less the others in it.

    numbers: in order. The run is the first and shortest of its kind; None without numbers.
    """
    best, run, total, start, last = 0, None, 0, 0, -1
    for number in numbers:
        total -= number - last - 1
        if total <= 0:
            total, start = 0, number
        total, last = total + 1, number
        if total > best:
            best, run = total, (start, number)
    return run


def run_alike(chain: UnitChain, target: str, place: Link) -> Run | None:
    """Return the unit nearest to a place that is a term in another form, as a run; None if there is none.

    Attention may miss a word of the source; if the model wrote the term inflected, that is what it came from.
    """
    for link in chain.near(place):
        if not link.unit.is_placed and is_other_form(link.unit.text, target):
            return link, link
    return None


def is_other_form(word: str, term: str) -> bool:
    """Return whether two words begin alike and are about as long, or one ends as the other: Bank and Sitzbank."""
    word, term = word.strip(STOPS + OPENING).lower(), term.lower()
    alike = len(os.path.commonprefix([word, term]))
    is_part = min(len(word), len(term)) >= FEWEST_ALIKE and (word.endswith(term) or term.endswith(word))
    return is_part or (alike >= FEWEST_ALIKE and alike >= max(len(word), len(term)) - MOST_OF_ENDING)


def is_replaceable(source: Source, chain: UnitChain, run: Run, words: Sequence[int], value: str) -> bool:
    """Return whether a run of units stands for a span alone, and not for much more, as a sentence without spaces is."""
    first, last = run
    is_everything = first.before is chain.end is last.after and len(words) < len(source.words)
    length = sum(len(link.unit.before + link.unit.text) for link in between(first, last))
    return not is_everything and length <= 3 * len(value) + LONGEST_REPLACED


def insert(chain: UnitChain, place: Link, value: str, suffix: str, words: range) -> None:
    """Insert a value before a place; at the end it stands before the stop of the sentence."""
    last = chain.end.before
    if place is chain.end is not last and suffix and not last.unit.is_placed:
        bare = last.unit.text.rstrip(STOPS)
        if bare and bare != last.unit.text:
            stops = last.unit.text[len(bare) :]
            last.unit = last.unit._replace(text=bare)
            chain.insert(place, new_units(" ", value + stops, frozenset(words)), words)
            return
    before = "" if place.before is chain.end else " " if place is chain.end else place.unit.before
    chain.insert(place, new_units(before, value, frozenset(words)), words)


def new_units(before: str, text: str, sources: frozenset[int]) -> list[Unit]:
    return [unit._replace(sources=sources, is_placed=True) for unit in units_of(before + text, ())]


def leading(word: str, prefix: str, value: str) -> str:
    """Return the punctuation that a replaced word begins with and that stays."""
    length, signs = 0, {*OPENING, *prefix}
    while length < len(word) and word[length] in signs and not value.startswith(word[length]):
        length += 1
    return word[:length]


def trailing(word: str, suffix: str, value: str) -> str:
    """Return the punctuation that a replaced word ends with and that stays."""
    length, signs = len(word), {*STOPS, *suffix}
    while length and word[length - 1] in signs and not value.endswith(word[length - 1]):
        length -= 1
    return word[length:]
