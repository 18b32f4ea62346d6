"""Mixing: which pairs of several weighted corpora an epoch takes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Mixture(NamedTuple):
    """Weighted entries of training files, in the order in which their pairs follow one another.

    An epoch takes as many pairs as there are. Of these, each entry contributes a share in proportion to its weight:
    with the weights 1 and 3, three of four pairs are of the second entry, however large it is. An entry goes on in the
    next epoch where it stopped, and begins anew in another order when all of its pairs have been taken.
    """

    sizes: Sequence[int]  # pairs of each entry
    weights: Sequence[float]

    def counts(self) -> list[int]:
        """Return how many pairs of each entry an epoch takes, at least one, even if all are then a few too many."""
        ends = np.rint(np.cumsum(self.weights) / np.sum(self.weights) * np.sum(self.sizes)).astype(int)
        return np.maximum(np.diff(ends, prepend=0), 1).tolist()

    def pairs_of_epoch(self, seeds: Sequence[int], epoch: int) -> np.ndarray:
        """Return the pairs of `epoch`, int64 (pairs,), a function of the arguments alone. seeds: ints."""
        firsts = np.cumsum([0, *self.sizes])
        taken = [
            first + stretch(size, epoch * count, count, [*seeds, entry])
            for entry, (first, size, count) in enumerate(zip(firsts, self.sizes, self.counts(), strict=False))
        ]
        return np.concatenate(taken)


def stretch(size: int, first: int, count: int, seeds: Sequence[int]) -> np.ndarray:
    """Return `count` numbers below `size`, from place `first` on in an endless row of permutations of them all."""
    passes = range(first // size, (first + count - 1) // size + 1)
    # `+ 1` keeps these seeds apart from those of the packing of an epoch, since NumPy takes [1, 0] and [1] for the same
    permutations = [np.random.default_rng([*seeds, number + 1]).permutation(size) for number in passes]
    start = first - passes[0] * size
    return np.concatenate(permutations)[start : start + count]
