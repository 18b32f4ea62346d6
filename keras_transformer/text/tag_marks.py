"""Tags between the words of a translation: white space and punctuation are on the side of them where the source has it.

What the source has not at a tag goes where it leaves brackets and quotation marks whole.
"""

import bisect
import collections
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from keras_transformer.text.placing import OPENING, STOPS
from keras_transformer.text.unit_chain import Unit
from keras_transformer.text.words import LETTER

BRACKETS = dict(zip(")]}）］｝」』》〉】〕", "([{（［｛「『《〈【〔", strict=True))  # by the one that closes
QUOTES = '"„“”«»‹›'  # those that are no apostrophes
CLOSING = "".join(BRACKETS) + QUOTES + "'’‘"
MOST_SIGNS = 32  # punctuation beside a tag that is looked at; of a word with more, none is divided from it
SPACE, LETTER_OR_SPACE = re.compile(r"\s"), re.compile(r"[\w\s]")


class Punctuation(NamedTuple):
    """What the source has at a tag without a space between: outside of its pair, inside, and whether letters follow."""

    outside: str = ""
    inside: str = ""
    begins_word: bool = False


class Mark(NamedTuple):
    """A tag at its place between the units of a translation.

    is_left: it stands behind the word before it, and not before the next one. beside: the punctuation of that word in
    the source. takes_more: so does further punctuation stand inside of a pair, or before a tag that stands alone.
    pair: 1 if the tag opens a pair, -1 if it closes one. divides: no white space follows the tag, or stands before it.
    has_space: white space stands on its left, and so on its right if `is_apart`.
    """

    text: str
    is_left: bool
    beside: Punctuation = Punctuation()
    takes_more: bool = True
    pair: int = 0
    divides: bool = False
    has_space: bool = False
    is_apart: bool = False


def punctuation_at(text: str, place: int, opens: bool) -> Punctuation:
    """Return the punctuation at a place of a text, for a tag that opens a pair there, or closes one."""
    left, right = text[max(place - MOST_SIGNS, 0) : place], text[place : place + MOST_SIGNS]
    before, after = SPACE.split(left[::-1], 1)[0][::-1], SPACE.split(right, 1)[0]
    outer, inner = (before, after) if opens else (after[::-1], before[::-1])
    signs, inner_signs = (LETTER_OR_SPACE.split(each, 1)[0] for each in (outer, inner))
    if LETTER.search(outer):  # a part of a word is inside
        return Punctuation(signs if inner else "")
    return Punctuation(signs, inner_signs, bool(outer and LETTER.search(inner)))


def serialised(items: Sequence[Unit | Mark]) -> str:
    """Write units and tags: white space stands outside of pairs, and punctuation where the source has it."""
    parts, heads = [], {}  # heads: punctuation of a word that is written already
    texts, begins = [], []  # `parts` without the tags, and how many of them were before the pairs that are open
    tail, used, owed = "", 0, None  # the last word's punctuation; what is before the next one, None: as it has it
    units = {place: item for place, item in enumerate(items) if isinstance(item, Unit)}
    closings, of_heads = closings_of(items), {place: head_of(unit.text) for place, unit in units.items()}
    places = sorted(units)

    def write(*written: str) -> None:
        parts.extend(written)
        texts.extend(written)

    for number, item in enumerate(items):
        if isinstance(item, Unit):
            core, rest = core_and_tail(item.text[len(heads.get(number, "")) :])
            write(tail[used:], item.before if owed is None else owed, core)
            tail, used, owed = rest, 0, None
        elif item.is_left:
            inside = "".join(texts[begins.pop() :]) if item.pair else ""
            end = taken(tail, used, item, inside)
            write(tail[used:end])
            parts.append(item.text)
            used = end
            owed = "" if item.divides else owed
        else:
            after = next(iter(places[(following := bisect.bisect_left(places, number)) : following + 1]), None)
            write(tail[used:])
            tail, used = "", 0
            if item.divides:
                owed = ""
            elif owed is None:
                write(units[after].before if after is not None else " " if item.has_space else "")
                owed = ""
            if after is not None and (not item.pair or after < closings[number]):
                head, done = of_heads[after], len(heads.get(after, ""))
                inside = "".join(units[place].text for place in range(after, closings.get(number, 0)) if place in units)
                left = len(head) - taken(head[::-1], 0, item, inside[len(head) :][::-1])
                heads[after] = head[: max(left, done)]
                write(head[done : len(heads[after])])
            if item.pair:
                begins.append(len(texts))
            parts.append(item.text)
            owed = " " if item.is_apart else owed
    return "".join([*parts, tail[used:]])


def closings_of(items: Sequence[Unit | Mark]) -> dict[int, int]:
    """Return where the pair ends that a mark opens."""
    found, waiting = {}, []
    for number, item in enumerate(items):
        if isinstance(item, Mark) and item.pair > 0:
            waiting.append(number)
        elif isinstance(item, Mark) and item.pair < 0:
            found[waiting.pop()] = number
    return found


def taken(signs: str, least: int, mark: Mark, inside: str) -> int:
    """Return how many of the signs at an edge of a word, from the word on, stand inside of a pair: `least` or more.

    inside: what else the pair has inside. Signs stand where the source has such ones; others so that brackets and
    quotation marks are whole inside, and then where the mark takes them.
    """

    def cost(count: int) -> tuple[int, int, int]:
        in_pair, out = signs[:count], signs[count:]
        differing = difference(in_pair, mark.beside.inside) + difference(out, mark.beside.outside)
        is_more = mark.takes_more and not mark.beside.outside
        return differing, unmatched(inside + in_pair) if mark.pair else 0, -count if is_more else count

    return min(range(least, len(signs) + 1), key=cost) if least < len(signs) else least


def difference(signs: str, others: str) -> int:
    """Return how many signs two texts do not have in common; brackets are alike, and so are quotation marks, stops."""
    counts, other_counts = collections.Counter(kinds(signs)), collections.Counter(kinds(others))
    return (counts - other_counts).total() + (other_counts - counts).total()


def kinds(signs: str) -> Iterable[str]:
    """Yield a sign for each of some signs, the same for those of a kind."""
    for sign in signs:
        is_bracket = sign in BRACKETS or sign in BRACKETS.values()
        yield "(" if is_bracket else "." if sign in STOPS else '"' if sign in CLOSING + OPENING else sign


def unmatched(text: str) -> int:
    """Return how many brackets and quotation marks of a text lack their other half."""
    brackets = sum(abs(text.count(close) - text.count(open_)) for close, open_ in BRACKETS.items())
    return brackets + sum(map(text.count, QUOTES)) % 2


def core_and_tail(word: str) -> tuple[str, str]:
    """Divide a word before the punctuation at its end; a word of punctuation alone is not divided.

    A bracket that the word itself has opened is no such punctuation: word(s), {name}.
    """
    core = word.rstrip(STOPS + CLOSING)
    if not LETTER.search(core) or len(word) - len(core) > MOST_SIGNS:
        return word, ""
    while (close := word[len(core) : len(core) + 1]) in BRACKETS:
        place = core.rfind(BRACKETS[close])
        is_open = place >= 0 and core.count(BRACKETS[close]) > core.count(close)
        if not is_open or not (close == "}" or LETTER.search(core[:place])):
            break
        core += close
    return core, word[len(core) :]


def head_of(word: str) -> str:
    """Return the punctuation that a word begins with; "" for a word of punctuation alone."""
    core = word.lstrip(OPENING)
    head = word[: len(word) - len(core)]
    return head if len(head) <= MOST_SIGNS and LETTER.search(core) else ""
