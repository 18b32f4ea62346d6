"""Pieces that stand for protected spans, in the text of a model that was trained with `tokenizer.placeholders`."""

import itertools
import re
from collections.abc import Callable, Sequence

MOST_PLACEHOLDERS = 100
OPENING = "\u27e6"
SYMBOL = re.compile(f"{OPENING}([1-9][0-9]?|100)\u27e7")


def symbol_of(number: int) -> str:
    """Return placeholder `number`, counted from 1, as a text has it: ⟦1⟧, in brackets that hardly any text has."""
    return f"{OPENING}{number}\u27e7"


def symbols_of(count: int) -> list[str]:
    """Return the first `count` placeholders, which the tokenizer has as pieces."""
    return [symbol_of(number) for number in range(1, count + 1)]


def placeholders_known(pieces_of: Callable[[str], Sequence[str]]) -> int:
    """Return how many placeholders a model knows, of whose vocabulary only the pieces of a text can be had."""
    return len(placeholders_in(pieces_of(" ".join(symbols_of(MOST_PLACEHOLDERS)))))


def placeholders_in(pieces: Sequence[str]) -> tuple[int, ...]:
    """Return the ids of the placeholders among the pieces of a vocabulary, in order; () of a model that knows none."""
    ids = {piece: number for number, piece in enumerate(pieces)}
    return tuple(
        itertools.takewhile(lambda number: number >= 0, (ids.get(s, -1) for s in symbols_of(MOST_PLACEHOLDERS)))
    )
