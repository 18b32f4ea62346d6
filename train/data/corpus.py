"""A corpus as three splits of sentence pairs: what every source of text returns."""

import collections
import dataclasses
import itertools

from keras_transformer.errors import UserError


class CorpusError(UserError):
    """Data that makes no sense; the message says where, what was found and what to do."""


class Split:
    """One part of a corpus: iterating gives its (source, target) pairs of strings, read anew each time.

    `read` is a function that returns an iterator over all pairs. A pair with an empty side teaches nothing and
    would be a row without a first word: it is left out and counted in `skipped`, by reason. The counts are those
    of the latest iteration. Raises CorpusError, at the end, if no pair is left.

    `fingerprint` is a function that returns what decides the pairs, as JSON can hold it: another fingerprint, other
    pairs. It looks for the split's files and raises CorpusError for a missing one.

    `shards` are the Splits that it consists of where it is divided for several workers; else it alone.
    """

    def __init__(self, name, read, fingerprint=None, shards=()):
        self.name = name
        self.fingerprint = fingerprint
        self.shards = tuple(shards) or (self,)
        self.skipped = collections.Counter()
        self._read = read

    @classmethod
    def of_shards(cls, name, shards):
        """One Split of all pairs of `shards`, in this order."""
        shards = tuple(shards)
        if len(shards) == 1:
            return shards[0]
        return cls(name, lambda: itertools.chain.from_iterable(shard._read() for shard in shards), shards=shards)

    def __iter__(self):
        self.skipped.clear()
        is_empty = True
        for source, target in self._read():
            if not source.strip():
                self.skipped["empty source"] += 1
            elif not target.strip():
                self.skipped["empty target"] += 1
            else:
                is_empty = False
                yield source, target
        if is_empty:
            raise CorpusError(f"{self.name} has no sentence pair left. Skipped: {skipped_sentence(self.skipped)}.")


def skipped_sentence(skipped):
    """Counts by reason as words: "12 empty source, 3 longer than row_length"; "none" for none."""
    return ", ".join(f"{count:,} {reason}" for reason, count in sorted(skipped.items())) or "none"


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Three splits, each an iterable of (source, target) strings that can be gone through again and again."""

    train: Split
    validation: Split
    test: Split | None  # None: the data has no test set
    source_language: str
    target_language: str


def own_shards(split, worker):
    """The Splits that this worker reads: its contiguous part of several shards, or the only one that there is."""
    if len(split.shards) == 1:
        return split.shards
    count = len(split.shards) // worker.count
    return split.shards[worker.index * count : (worker.index + 1) * count]
