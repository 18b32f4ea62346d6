"""Puts protected spans into a translation: kept if the model copied them, else in place of what they are aligned to."""

import dataclasses
import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from keras_transformer.pieces.scripts import UNSPACED_CHARACTER
from keras_transformer.text.occurrences import occurrences, places_of_phrase
from keras_transformer.text.spans import AT_MOST_ONCE, TERM, Span

Alignment = Sequence[tuple[int, int]]  # numbers of a word of the source and of one of the translation, from 0

WORD = re.compile(r"(\s*)(\S+)")
LETTER = re.compile(r"\w")
STOPS = ".,;:!?…。、，！？；：．｡､؟،؛۔।॥"
OPENING = "(\"'„“‘«‹¿¡[‚»›（［「『《〈【〔"
FEWEST_ALIKE, MOST_OF_ENDING = 4, 3  # letters at the begin and at the end of two forms of a word
LONGEST_REPLACED = 30  # characters that replaced words may have beyond three times the span: see `is_replaceable`


def alignment_of(text: str) -> list[tuple[int, int]]:
    """Return the pairs of numbers in "0-0 1-2", as a served graph writes an alignment."""
    return [(int(source), int(target)) for source, _, target in (pair.partition("-") for pair in text.split())]


class Unit(NamedTuple):
    """A word of a translation: the white space before it, its text, the words of the source that it is aligned to."""

    before: str
    text: str
    sources: frozenset[int]
    is_placed: bool = False  # it holds a span, so nothing may replace it
    goes_on: bool = False  # a required phrase goes on with the next unit, so nothing may stand between them


class Placed(NamedTuple):
    """A translation as units, and the spans that have no place in it."""

    units: list[Unit]
    unplaced: list[Span]


@dataclasses.dataclass(frozen=True)
class Source:
    """A text without tags, and its spans with their places in it."""

    text: str
    spans: tuple[Span, ...]

    @property
    def words(self) -> list[tuple[int, int]]:
        """Where each word begins and ends."""
        return [match.span(2) for match in WORD.finditer(self.text)]

    def words_of(self, start: int, end: int) -> list[int]:
        """Return the numbers of the words that text[start:end] touches."""
        return [number for number, word in enumerate(self.words) if word[0] < end and start < word[1]]

    @property
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


def units_of(translation: str, alignment: Alignment) -> list[Unit]:
    """Return the words of a translation with what they are aligned to."""
    sources = {}
    for source, target in alignment:
        sources.setdefault(target, set()).add(source)
    return [
        Unit(match[1], match[2], frozenset(sources.get(number, ())))
        for number, match in enumerate(WORD.finditer(translation))
    ]


def text_of(units: Iterable[Unit]) -> str:
    return "".join(unit.before + unit.text for unit in units)


def is_through(source: Source, translation: str) -> bool:
    """Return whether a translation has every span as often as the source, and no further copy of AT_MOST_ONCE."""
    found = occurrences(source.spans, translation)
    strict = {span.target for span in source.spans if span.kind in AT_MOST_ONCE}
    for value, places in found.items():
        wanted = sum(span.target == value for span in source.spans)
        if len(places) < wanted or (len(places) > wanted and value in strict):
            return False
    return True


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
    for group in groups(source, missing):
        units = with_group(source, units, group)
    return Placed(units, [])


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
    missing, cuts, holding = [], [], units_at(fixed, ends)
    for value, places in found.items():
        spans = [span for span in source.spans if span.target == value]
        units_of_places = {place: units_at([place], ends) for place in places}
        left, waiting = list(places), []
        for span in spans:
            words = set(source.words_of(span.start, span.end))
            near = [p for p in left if any(units[n].sources & words for n in units_of_places[p])]
            if near:
                left.remove(near[0])
                holding.update(units_of_places[near[0]])
            else:
                waiting.append(span)
        for span in waiting:
            if left:
                holding.update(units_of_places[left.pop(0)])
            else:
                missing.append(span)
        if any(span.kind in AT_MOST_ONCE for span in spans):
            cuts += left
        else:
            for place in left:
                holding.update(units_of_places[place])
    marked = []
    for number, (unit, (begin, end)) in enumerate(zip(units, ends, strict=True)):
        text = unit.text
        for start, stop in sorted(cuts, reverse=True):
            if begin < stop and start < end:
                text = text[: max(start - begin, 0)] + text[min(stop, end) - begin :]
        goes_on = any(start < end < stop for start, stop in fixed)
        marked.append(unit._replace(text=text, is_placed=number in holding, goes_on=goes_on))
    return [unit for unit in marked if unit.text], sorted(missing)


def units_at(places: Iterable[tuple[int, int]], ends: Sequence[tuple[int, int]]) -> set[int]:
    """Return the numbers of the units, each with its begin and end, that places of a text touch."""
    return {n for start, stop in places for n, (begin, end) in enumerate(ends) if begin < stop and start < end}


def groups(source: Source, spans: Sequence[Span]) -> list[list[Span]]:
    """Return spans that stand in one word, such as {0}/{1}, together."""
    together = []
    for span in spans:
        if together and not re.search(r"\s", source.text[together[-1][-1].end : span.start]):
            together[-1].append(span)
        else:
            together.append([span])
    return together


def with_group(source: Source, units: list[Unit], group: list[Span]) -> list[Unit]:
    """Return the units with spans of one word in place of what they are aligned to, or inserted beside neighbours."""
    numbers = source.words_of(group[0].start, group[-1].end)
    begin = max([source.words[numbers[0]][0], *(span.end for span in source.spans if span.end <= group[0].start)])
    end = min([source.words[numbers[-1]][1], *(span.start for span in source.spans if span.start >= group[-1].end)])
    prefix, suffix = source.text[begin : group[0].start], source.text[group[-1].end : end]
    value = replaced(source.text[: group[-1].end], group, lambda span: span.target)[group[0].start :]
    if UNSPACED_CHARACTER.search(
        prefix + suffix
    ):  # the word is a sentence, and its translation no translation of the span
        return inserted(units, place_beside(units, numbers), value, suffix, frozenset(numbers))
    if LETTER.search(prefix + suffix):  # {count}-fold: a part of a word cannot be translated alone
        value, prefix, suffix = prefix + value + suffix, "", ""
    run = best_run([-2 if u.is_placed else 1 if u.sources & set(numbers) else -1 for u in units])
    if run is None and group[0].kind == TERM:
        run = run_alike(units, group[0].target, place_beside(units, numbers))
    if run is None or not is_replaceable(source, units, run, numbers, value):
        place = place_beside(units, numbers)
        return inserted(units, place, value, suffix, frozenset(numbers))
    first, last = run
    head = leading(units[first].text, prefix, value)
    tail = trailing(units[last].text, suffix, value)
    sources = frozenset(numbers).union(*(unit.sources for unit in units[first : last + 1]))
    return [*units[:first], *new_units(units[first].before, head + value + tail, sources), *units[last + 1 :]]


def best_run(weights: Sequence[int]) -> tuple[int, int] | None:
    """Return the first and last number of the run with the largest sum; None if no weight is above 0."""
    best, run, total, start = 0, None, 0, 0
    for number, weight in enumerate(weights):
        if total <= 0:
            total, start = 0, number
        total += weight
        if total > best:
            best, run = total, (start, number)
    return run


def run_alike(units: list[Unit], target: str, place: int) -> tuple[int, int] | None:
    """Return the unit nearest to a place that is a term in another form, as a run; None if there is none.

    Attention may miss a word of the source; if the model wrote the term inflected, that is what it came from.
    """
    found = [n for n, unit in enumerate(units) if not unit.is_placed and is_other_form(unit.text, target)]
    nearest = min(found, key=lambda number: abs(number - place), default=None)
    return None if nearest is None else (nearest, nearest)


def is_other_form(word: str, term: str) -> bool:
    """Return whether two words begin alike and are about as long, or one ends as the other: Bank and Sitzbank."""
    word, term = word.strip(STOPS + OPENING).lower(), term.lower()
    alike = len(os.path.commonprefix([word, term]))
    is_part = min(len(word), len(term)) >= FEWEST_ALIKE and (word.endswith(term) or term.endswith(word))
    return is_part or (alike >= FEWEST_ALIKE and alike >= max(len(word), len(term)) - MOST_OF_ENDING)


def is_replaceable(source: Source, units: list[Unit], run: tuple[int, int], numbers: Sequence[int], value: str) -> bool:
    """Return whether a run of units stands for a span alone, and not for much more, as a sentence without spaces is."""
    length = len(text_of(units[run[0] : run[1] + 1]))
    is_everything = run == (0, len(units) - 1) and len(numbers) < len(source.words)
    return not is_everything and length <= 3 * len(value) + LONGEST_REPLACED


def place_beside(units: list[Unit], numbers: Sequence[int]) -> int:
    """Return the number of the unit before which words of the source belong that nothing is aligned to."""
    place = place_by_neighbours(units, numbers)
    while 0 < place < len(units) and units[place - 1].goes_on:
        place += 1
    return place


def place_by_neighbours(units: list[Unit], numbers: Sequence[int]) -> int:
    """Return the number of the unit behind what words of the source are aligned to, or their neighbours."""
    most = max((source for unit in units for source in unit.sources), default=0)
    for distance in range(0, max(most, numbers[-1]) + 2):
        before, after = numbers[-1] if distance == 0 else numbers[0] - distance, numbers[-1] + distance
        if behind := [n for n, unit in enumerate(units) if before in unit.sources]:
            return behind[-1] + 1
        if ahead := [n for n, unit in enumerate(units) if distance and after in unit.sources]:
            return ahead[0]
    return len(units)


def inserted(units: list[Unit], place: int, value: str, suffix: str, sources: frozenset[int]) -> list[Unit]:
    """Return the units with a value before number `place`; at the end it stands before the stop of the sentence."""
    if place == len(units) and units and suffix and not units[-1].is_placed:
        last = units[-1]
        bare = last.text.rstrip(STOPS)
        if bare and bare != last.text:
            stops = last.text[len(bare) :]
            return [*units[:-1], last._replace(text=bare), *new_units(" ", value + stops, sources)]
    before = units[place].before if place < len(units) else " "
    return [
        *units[:place],
        *new_units(before if place else "", value, sources),
        *(unit._replace(before=unit.before or " ") for unit in units[place : place + 1]),
        *units[place + 1 :],
    ]


def new_units(before: str, text: str, sources: frozenset[int]) -> list[Unit]:
    words = WORD.findall(before + text)
    return [Unit(space, word, sources, is_placed=True) for space, word in words]


def leading(word: str, prefix: str, value: str) -> str:
    """Return the punctuation that a replaced word begins with and that stays."""
    length = 0
    while length < len(word) and word[length] in OPENING + prefix and not value.startswith(word[length]):
        length += 1
    return word[:length]


def trailing(word: str, suffix: str, value: str) -> str:
    """Return the punctuation that a replaced word ends with and that stays."""
    length = len(word)
    while length and word[length - 1] in STOPS + suffix and not value.endswith(word[length - 1]):
        length -= 1
    return word[length:]
