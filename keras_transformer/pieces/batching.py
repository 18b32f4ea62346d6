"""Batches of sentences of similar length: little padding."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from keras_transformer.ground.errors import InputError

LONGEST_SOURCE = 512  # tokens of a source sentence, EOS included
BYTES_PER_TOKEN = 64  # a line is cut to this many bytes per usable token before it is tokenized
SURROGATE = re.compile("[\ud800-\udfff]")  # half of a character: it has no partner
BATCH_SIZE = 128  # sentences that are searched together, at most


def batches_by_length(lengths: Mapping[int, int], batch_size: int) -> Iterator[list[int]]:
    """Yield the keys of `lengths` in batches of at most `batch_size`, shortest first; equal lengths keep their order.

    batches_by_length({0: 5, 1: 2, 2: 3}, batch_size=2)  ->  [1, 2], [0]
    """
    keys = sorted(lengths, key=lengths.__getitem__)
    for first in range(0, len(keys), batch_size):
        yield keys[first : first + batch_size]


def refuse_no_list(lines: Iterable[str], name: str) -> None:
    """Raises TypeError if `lines`, each of which is a `name`, is no list of texts.

    One string is none, whose letters would become sentences; nor a table of pandas, whose columns' names would.
    """
    plural = f"{name.lower()}{'es' if name.endswith('x') else 's'}"
    asked = f"{plural} must be a list of {'sentences' if plural == 'lines' else 'texts'}"
    if isinstance(lines, str | bytes):
        raise TypeError(f"{asked}, not one string. Received: {lines!r:.60}")
    if not isinstance(lines, Iterable) or getattr(lines, "ndim", 1) != 1:
        raise TypeError(f"{asked}. Received: {type(lines).__name__} {lines!r:.60}")


def list_of_lines(lines: Iterable[str], name: str = "Line") -> list[str]:
    """Return `lines` as a list. Errors call a line `name` and its number.

    Raises TypeError if `lines` is no list, see `refuse_no_list`, or if a line is not a string.
    Raises InputError if a line has a lone surrogate: half of a character of UTF-16, which UTF-8 cannot express.
    """
    refuse_no_list(lines, name)
    lines = list(lines)
    for number, line in enumerate(lines, 1):
        if not isinstance(line, str):
            raise TypeError(f"{name} {number} must be a string. Received: {line!r:.60}")
        if why := why_no_text(line, f"{name} {number}"):
            raise InputError(why)
    return lines


def encoded_by(processor: Any, texts: str | list[str]) -> list:
    """Return what a SentencePieceProcessor makes of a text, or of each text.

    Raises TypeError for one that is no string and InputError for one with a lone surrogate, with its number.
    """
    try:
        return processor.encode(texts)
    except (RuntimeError, TypeError):
        list_of_lines(texts if isinstance(texts, list) else [texts], "Text")
        raise


def why_no_text(line: str, name: str) -> str:
    """Return a sentence about the line, called `name`, if it has a lone surrogate, else ""."""
    if not SURROGATE.search(line):
        return ""
    return f"{name} has a lone surrogate, half of a character, in {line[:60]!a}: remove it, or write the character."
