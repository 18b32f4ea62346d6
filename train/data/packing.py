"""Many sentence pairs in one row: which pairs share a row so that little of it stays empty."""

import bisect
import collections
from typing import NamedTuple

import numpy as np

WINDOW = 8192  # pairs among which the best fit is looked for; more is hardly better, fewer leaves more padding
STRETCH = 2**16  # pairs that are Python numbers at a time: all those of a large corpus would fill gigabytes


class Packing(NamedTuple):
    """Row r holds the pairs `pairs[row_offsets[r] : row_offsets[r + 1]]`, in this order."""

    pairs: np.ndarray  # int64 (pairs,)
    row_offsets: np.ndarray  # int64 (rows + 1,)

    @property
    def num_rows(self):
        return len(self.row_offsets) - 1

    def take(self, rows):
        """The Packing of `rows`, int (n,), in this order; a row may be taken more than once."""
        starts = self.row_offsets[rows]
        sizes = self.row_offsets[rows + 1] - starts
        row_offsets = offsets_of(sizes)
        return Packing(
            self.pairs[np.arange(row_offsets[-1]) + np.repeat(starts - row_offsets[:-1], sizes)], row_offsets
        )


def offsets_of(lengths):
    """int (n,) -> int64 (n + 1,): where each of n stretches begins, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def pack(source_lengths, target_lengths, source_row_length, row_length, rng):
    """Distribute all pairs over rows of `source_row_length` source and `row_length` target positions, each pair once.

    source_lengths, target_lengths: int (pairs,), none longer than a row. rng: the np.random.Generator that shuffles
    pairs before packing and rows after it, so that neither depends on length; it alone decides the result.

    A greedy best fit in two dimensions. `WINDOW` pairs wait beside a shuffled queue. A row begins with the pair that
    has waited longest; then pairs come from the front of the queue for as long as both sides keep room for another
    short sentence; then the waiting pair that fills most of what is left, as often as one fits. The room kept free
    is the length of a short sentence of this corpus (the 5th percentile), since it takes some choice of sentences to
    fill a row to its last position. Where the queue ends, half of those that wait become a queue for the others.
    """
    reserve = int(np.percentile(np.maximum(source_lengths, target_lengths), 5))
    room = _Room(source_row_length, row_length, reserve)
    order, start = rng.permutation(len(source_lengths)), 0
    waiting = order[:0]
    pairs, sizes = [], []
    while start < len(order) or len(waiting):
        fresh = order[start : start + STRETCH]
        start += STRETCH
        stretch = np.concatenate([waiting, fresh]) if len(fresh) else rng.permutation(waiting)
        packed, stretch_sizes = _pack_stretch(source_lengths[stretch], target_lengths[stretch], room)
        pairs.append(stretch[packed])
        sizes.append(stretch_sizes)
        waiting = np.delete(stretch, packed)
    packing = Packing(np.concatenate(pairs), offsets_of(np.concatenate(sizes)))
    return packing.take(rng.permutation(packing.num_rows))


class _Room(NamedTuple):
    """The positions of a row, and how many of either side are kept for a best fit."""

    source: int
    target: int
    reserve: int


def _pack_stretch(source_lengths, target_lengths, room):
    """Rows until the queue is empty, at least one. The first pairs wait, at most half of all; the others are the queue.

    Returns what is packed, int (n,), row after row, and how many pairs each row has. The others are still waiting.
    """
    lengths = list(zip(source_lengths.tolist(), target_lengths.tolist(), strict=True))
    source_offsets, target_offsets = offsets_of(source_lengths).tolist(), offsets_of(target_lengths).tolist()
    waiting = _Waiting(lengths, room)
    head = waiting.add(0, min(WINDOW, (len(lengths) + 1) // 2))  # of the queue
    packed, sizes = [], []
    while not sizes or head < len(lengths):
        row = [waiting.take_oldest()]
        source_room, target_room = room.source - lengths[row[0]][0], room.target - lengths[row[0]][1]
        source_end = bisect.bisect_right(source_offsets, source_offsets[head] + source_room - room.reserve, head)
        target_end = bisect.bisect_right(target_offsets, target_offsets[head] + target_room - room.reserve, head)
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
    """Pairs, as positions in `lengths`, to be taken by age or by the lengths of their sides."""

    def __init__(self, lengths, room):
        self.lengths = lengths
        self.ages = collections.deque()  # oldest first; may still hold some that are taken
        self.is_taken = bytearray(len(lengths))
        self.by_lengths = collections.defaultdict(collections.deque)  # (source, target) length -> oldest first
        self.targets = [0] * (room.source + 1)  # by source length: bit t is 1 where a pair of target length t waits

    def add(self, head, count):
        """Let `count` more wait, those from `head` on, or as many as there are. Returns the new head of the queue."""
        end = min(head + count, len(self.lengths))
        for position in range(head, end):
            source, target = lengths = self.lengths[position]
            self.ages.append(position)
            self.by_lengths[lengths].append(position)
            self.targets[source] |= 1 << target
        return end

    def take_oldest(self):
        while self.is_taken[self.ages[0]]:
            self.ages.popleft()
        return self._take(self.lengths[self.ages[0]])

    def take_best_fit(self, source_room, target_room):
        """The pair that, of all that fit, fills most; None if none fits."""
        most, best, fitting = 0, None, (2 << target_room) - 1
        for source in range(source_room, 0, -1):
            if source + target_room <= most:
                break
            targets = self.targets[source] & fitting
            if targets and source + targets.bit_length() - 1 > most:
                best = source, targets.bit_length() - 1
                most = sum(best)
        return best and self._take(best)

    def _take(self, lengths):
        """The oldest pair of these lengths."""
        alike = self.by_lengths[lengths]
        position = alike.popleft()
        if not alike:
            self.targets[lengths[0]] ^= 1 << lengths[1]
        self.is_taken[position] = True
        return position
