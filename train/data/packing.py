"""Packing: which sentence pairs share a row, so that few positions of it stay empty."""

import bisect
import collections
from typing import NamedTuple

import numpy as np

from ..config.training import RowLengths

WINDOW = 8192  # pairs among which the best fit is searched; more is hardly better, fewer leaves more padding
STRETCH = 2**16  # pairs that become Python numbers at once; those of a whole large corpus would fill gigabytes


class Packing(NamedTuple):
    """Row r holds the pairs `pairs[row_offsets[r] : row_offsets[r + 1]]`, in this order."""

    pairs: np.ndarray  # int64 (pairs,)
    row_offsets: np.ndarray  # int64 (rows + 1,)

    @property
    def num_rows(self) -> int:
        return len(self.row_offsets) - 1

    def take(self, rows: np.ndarray) -> "Packing":
        """The Packing of `rows`, int (n,), in this order; a row may be taken more than once."""
        starts = self.row_offsets[rows]
        sizes = self.row_offsets[rows + 1] - starts
        return Packing(self.pairs[places_of(starts, sizes)], offsets_of(sizes))


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """int (n,) -> int64 (n + 1,): where each of n stretches begins, then where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def places_of(begins: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The places in stretches that begin at `begins` and have `lengths`, both (n,): (1, 7), (2, 1) -> 1, 2, 7."""
    before = offsets_of(lengths)
    return np.repeat(begins - before[:-1], lengths) + np.arange(before[-1])


def pack(
    source_lengths: np.ndarray, target_lengths: np.ndarray, row_lengths: RowLengths, rng: np.random.Generator
) -> Packing:
    """Distribute all pairs, each once, over rows of `row_lengths` positions.

    source_lengths, target_lengths: int (pairs,), none longer than a row. rng: shuffles the pairs before packing and the
    rows after it, so that the order of neither depends on length; the result depends on nothing else that is random.

    This is a greedy best fit in two dimensions, source and target. The pairs are a shuffled queue, and `WINDOW` pairs
    of it wait beside it. Each row is filled in three stages:

    1. It begins with the pair that has waited longest.
    2. It takes pairs from the front of the queue as long as both sides keep room for one more short sentence. A short
       sentence has the 5th percentile of this corpus' lengths: filling a row to its last position takes a choice.
    3. Of the waiting pairs that fit, it takes the one that fills most of the remaining room, until none fits.

    When the queue is empty, half of the waiting pairs become the queue, so that the rest can still be combined with
    them.
    """
    reserve = int(np.percentile(np.maximum(source_lengths, target_lengths), 5))
    order, start = rng.permutation(len(source_lengths)), 0
    waiting = order[:0]
    pairs, sizes = [], []
    while start < len(order) or len(waiting):
        fresh = order[start : start + STRETCH]
        start += STRETCH
        stretch = np.concatenate([waiting, fresh]) if len(fresh) else rng.permutation(waiting)
        packed, stretch_sizes = _pack_stretch(source_lengths[stretch], target_lengths[stretch], row_lengths, reserve)
        pairs.append(stretch[packed])
        sizes.append(stretch_sizes)
        waiting = np.delete(stretch, packed)
    packing = Packing(np.concatenate(pairs), offsets_of(np.concatenate(sizes)))
    return packing.take(rng.permutation(packing.num_rows))


def _pack_stretch(
    source_lengths: np.ndarray, target_lengths: np.ndarray, row_lengths: RowLengths, reserve: int
) -> tuple[np.ndarray, np.ndarray]:
    """Fill rows until the queue is empty, at least one row. The first pairs wait, at most half; the rest is the queue.

    reserve: positions that stage 2 leaves free on either side. Returns the packed pairs, int (n,), row after row, and
    the number of pairs of each row. All other pairs are still waiting.
    """
    lengths = list(zip(source_lengths.tolist(), target_lengths.tolist(), strict=True))
    source_offsets, target_offsets = offsets_of(source_lengths).tolist(), offsets_of(target_lengths).tolist()
    waiting = _Waiting(lengths, row_lengths.source)
    head = waiting.add(0, min(WINDOW, (len(lengths) + 1) // 2))  # of the queue
    packed, sizes = [], []
    while not sizes or head < len(lengths):
        row = [waiting.take_oldest()]
        source_room = row_lengths.source - lengths[row[0]][0]
        target_room = row_lengths.target - lengths[row[0]][1]
        source_end = bisect.bisect_right(source_offsets, source_offsets[head] + source_room - reserve, head)
        target_end = bisect.bisect_right(target_offsets, target_offsets[head] + target_room - reserve, head)
        run = range(head, min(source_end, target_end) - 1)
        row.extend(run)
        head += len(run)
        source_room -= source_offsets[head] - source_offsets[head - len(run)]
        target_room -= target_offsets[head] - target_offsets[head - len(run)]
        head = waiting.add(head, 1)  # in the place of the oldest
        while (pair := waiting.take_best_fit(source_room, target_room)) is not None:
            row.append(pair)
            source_room -= lengths[pair][0]
            target_room -= lengths[pair][1]
            head = waiting.add(head, 1)
        packed += row
        sizes.append(len(row))
    return np.array(packed), np.array(sizes)


class _Waiting:
    """The waiting pairs, as positions in `lengths`. They are taken by age or by the lengths of their sides."""

    def __init__(self, lengths: list[tuple[int, int]], longest_source: int):
        self.lengths = lengths
        self.ages = collections.deque()  # oldest first; may still hold pairs that were taken by length
        self.is_taken = bytearray(len(lengths))
        self.by_lengths = collections.defaultdict(collections.deque)  # (source, target) length -> oldest first
        self.targets = [0] * (longest_source + 1)  # by source length: bit t is 1 if a pair of target length t waits

    def add(self, head: int, count: int) -> int:
        """Let `count` more pairs wait, from `head` on, or all that are left. Returns the new head of the queue."""
        end = min(head + count, len(self.lengths))
        for position in range(head, end):
            source, target = lengths = self.lengths[position]
            self.ages.append(position)
            self.by_lengths[lengths].append(position)
            self.targets[source] |= 1 << target
        return end

    def take_oldest(self) -> int:
        while self.is_taken[self.ages[0]]:
            self.ages.popleft()
        return self._take(self.lengths[self.ages[0]])

    def take_best_fit(self, source_room: int, target_room: int) -> int | None:
        """Take the pair that fills most of the room; None if no pair fits."""
        most, best = 0, None
        fitting_targets = (2 << target_room) - 1  # bits 0 .. target_room
        for source in range(source_room, 0, -1):
            if source + target_room <= most:
                break
            targets = self.targets[source] & fitting_targets
            longest_target = targets.bit_length() - 1  # -1: no pair of this source length fits
            if targets and source + longest_target > most:
                most, best = source + longest_target, (source, longest_target)
        return None if best is None else self._take(best)

    def _take(self, lengths: tuple[int, int]) -> int:
        """Take the oldest pair of these lengths."""
        positions = self.by_lengths[lengths]
        position = positions.popleft()
        if not positions:
            self.targets[lengths[0]] ^= 1 << lengths[1]
        self.is_taken[position] = True
        return position
