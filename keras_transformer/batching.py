"""Batches of sentences of similar length: little padding, and few shapes to compile."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

PADDED_LENGTHS = (16, 32, 64, 128, 256, 512)  # of a source sentence, EOS included: one compilation per length in use
LONGEST_SOURCE = PADDED_LENGTHS[-1]


def padded_length(length: int) -> int:
    """Return the smallest of PADDED_LENGTHS that is at least `length`, which is at most LONGEST_SOURCE."""
    return next(padded for padded in PADDED_LENGTHS if length <= padded)


def batches_by_length(lengths: Mapping[int, int], batch_size: int) -> Iterator[list[int]]:
    """Yield the keys of `lengths` in batches of at most `batch_size`, shortest first; equal lengths keep their order.

    batches_by_length({0: 5, 1: 2, 2: 3}, batch_size=2)  ->  [1, 2], [0]
    """
    yield from _batches(sorted(lengths, key=lengths.__getitem__), batch_size)


def batches_of_one_shape(lengths: Mapping[int, int], batch_size: int) -> Iterator[list[int]]:
    """Yield batches as `batches_by_length` does, each of sentences with the same padded length."""
    in_order = sorted(lengths, key=lengths.__getitem__)
    for _, keys in itertools.groupby(in_order, key=lambda key: padded_length(lengths[key])):
        yield from _batches(list(keys), batch_size)


def _batches(keys: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    for first in range(0, len(keys), batch_size):
        yield list(keys[first : first + batch_size])


def list_of_lines(lines: Iterable[str]) -> list[str]:
    """Return `lines` as a list. Raises TypeError if it is one string, whose letters would become sentences."""
    if isinstance(lines, str):
        raise TypeError(f"lines must be a list of sentences, not one string. Received: {lines!r}")
    return list(lines)
