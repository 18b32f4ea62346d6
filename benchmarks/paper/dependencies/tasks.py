"""Two tasks that are solved only by whoever sees far: rows whose last words ask for what stands D words before them.

copy: A B C D . . . . . 1 2 3 4   ->   A B C D
    Four words, then words of another alphabet that mean nothing, then four places to fill: word i belongs to place i.
lookup: c1 a7 d2 b3 . . . . d b a c   ->   2 3 7 1
    Four pairs of a key and a value, then pairs with other keys, then four keys, in any order: which value has each?
    A pair is one word.
"""

from typing import NamedTuple

import numpy as np

ASKED = 4  # words at the end of a row that ask
VALUES = 8  # different answers: guessing is right once in eight times
KEYS = 16
COPY, LOOKUP = "copy", "lookup"
VOCABULARY = {COPY: 2 * VALUES + ASKED, LOOKUP: KEYS * VALUES + KEYS}


class Rows(NamedTuple):
    """Rows of a task: ids int32 (rows, D + ASKED), and answers int32 (rows, ASKED) of the last words."""

    ids: np.ndarray
    answers: np.ndarray


def rows_of(task: str, distance: int, count: int, seed: int) -> Rows:
    """Draw rows; the same arguments give the same rows. `distance` is at least ASKED.

    In "copy", each answer stands exactly `distance` words before its place; in "lookup", up to ASKED - 1 words more
    or fewer.
    """
    generator = np.random.default_rng([seed, distance, count])
    return copy_rows(generator, distance, count) if task == COPY else lookup_rows(generator, distance, count)


def copy_rows(generator: np.random.Generator, distance: int, count: int) -> Rows:
    """Ids: 0 to VALUES - 1 words, then as many that mean nothing, then the places."""
    words = generator.integers(VALUES, size=(count, ASKED))
    between = VALUES + generator.integers(VALUES, size=(count, distance - ASKED))
    places = np.broadcast_to(2 * VALUES + np.arange(ASKED), words.shape)
    return Rows(np.concatenate([words, between, places], axis=1).astype("int32"), words.astype("int32"))


def lookup_rows(generator: np.random.Generator, distance: int, count: int) -> Rows:
    """Ids: key * VALUES + value for a pair, then one id per key that asks."""
    keys = generator.permuted(np.tile(np.arange(KEYS), (count, 1)), axis=1)
    asked, others = keys[:, :ASKED], keys[:, ASKED:]
    values = generator.integers(VALUES, size=(count, ASKED))
    drawn = generator.integers(others.shape[1], size=(count, distance - ASKED))
    between = np.take_along_axis(others, drawn, axis=1) * VALUES + generator.integers(VALUES, size=drawn.shape)
    order = generator.permuted(np.tile(np.arange(ASKED), (count, 1)), axis=1)
    questions = KEYS * VALUES + np.take_along_axis(asked, order, axis=1)
    ids = np.concatenate([asked * VALUES + values, between, questions], axis=1)
    return Rows(ids.astype("int32"), np.take_along_axis(values, order, axis=1).astype("int32"))
