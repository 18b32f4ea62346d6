"""Many sentence pairs in one row: which pairs share a row so that little of it stays empty."""

from typing import NamedTuple

import numpy as np

WINDOW = 4096  # pairs among which the best fit is looked for; more is hardly better, fewer leaves more padding


class Packing(NamedTuple):
    """Row r holds the pairs `pairs[row_offsets[r] : row_offsets[r + 1]]`, in this order."""

    pairs: np.ndarray  # int64 (pairs,)
    row_offsets: np.ndarray  # int64 (rows + 1,)

    @property
    def num_rows(self):
        return len(self.row_offsets) - 1


def pack(source_lengths, target_lengths, row_length, rng):
    """Distribute all pairs over rows of `row_length` source and `row_length` target positions, each pair once.

    source_lengths, target_lengths: int (pairs,), none above row_length. rng: the np.random.Generator that shuffles
    pairs before packing and rows after it, so that neither depends on length; it alone decides the result.

    A greedy best fit in two dimensions. Pairs go into a row in shuffled order for as long as both sides keep room
    for another short sentence; then the pair that fills most of what is left is chosen from the next `WINDOW` ones.
    The room kept free is the length of a short sentence of this corpus (the 5th percentile), since it takes some
    choice of sentences to fill a row to its last position.
    """
    reserve = int(np.percentile(np.maximum(source_lengths, target_lengths), 5))
    order = rng.permutation(len(source_lengths))
    window = _Window(source_lengths[order], target_lengths[order], row_length)
    packed, row_offsets = [], [0]
    while not window.is_empty:
        source_room = target_room = row_length
        while (position := window.front(source_room - reserve, target_room - reserve)) is not None or (
            position := window.best_fit(source_room, target_room)
        ) is not None:
            source_length, target_length = window.take(position)
            source_room -= source_length
            target_room -= target_length
            packed.append(position)
        row_offsets.append(len(packed))
    return _with_rows_shuffled(Packing(order[packed], np.array(row_offsets)), rng)


def _with_rows_shuffled(packing, rng):
    rows = rng.permutation(packing.num_rows)
    sizes = np.diff(packing.row_offsets)[rows]
    row_offsets = np.concatenate([[0], np.cumsum(sizes)])
    within = np.arange(len(packing.pairs)) - np.repeat(row_offsets[:-1], sizes)
    return Packing(packing.pairs[np.repeat(packing.row_offsets[:-1][rows], sizes) + within], row_offsets)


class _Window:
    """The next `WINDOW` pairs of a queue, to be taken from its front or by their lengths.

    A position is a place in the queue. `positions` may still hold some that are taken; `waiting` counts exactly.
    """

    def __init__(self, source_lengths, target_lengths, row_length):
        self.lengths = list(zip(source_lengths.tolist(), target_lengths.tolist(), strict=True))
        self.is_taken = bytearray(len(self.lengths))
        self.waiting = np.zeros((row_length + 1, row_length + 1), np.int32)  # pairs by (source, target) length
        self.positions = {}  # (source, target) length -> positions in the queue
        self.head = self.tail = 0
        self._admit()

    @property
    def is_empty(self):
        return self.head == len(self.lengths)

    def front(self, source_room, target_room):
        """The first position of the queue; None if its pair does not fit."""
        if self.is_empty:
            return None
        source_length, target_length = self.lengths[self.head]
        return self.head if source_length <= source_room and target_length <= target_room else None

    def best_fit(self, source_room, target_room):
        """A position whose pair, of all in the window that fit, fills most; None if none fits."""
        sources, targets = np.nonzero(self.waiting[: source_room + 1, : target_room + 1])
        if not len(sources):
            return None
        best = (sources + targets).argmax()
        positions = self.positions[int(sources[best]), int(targets[best])]
        while self.is_taken[positions[-1]]:
            positions.pop()
        return positions[-1]

    def take(self, position):
        """Remove the pair at `position`; returns its (source, target) length."""
        self.is_taken[position] = True
        self.waiting[self.lengths[position]] -= 1
        while self.head < len(self.lengths) and self.is_taken[self.head]:
            self.head += 1
        self._admit()
        return self.lengths[position]

    def _admit(self):
        while self.tail < min(self.head + WINDOW, len(self.lengths)):
            lengths = self.lengths[self.tail]
            self.positions.setdefault(lengths, []).append(self.tail)
            self.waiting[lengths] += 1
            self.tail += 1
