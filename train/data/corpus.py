"""A corpus as three splits of sentence pairs: what every source of text returns."""

import collections
import copy
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from keras_transformer.ground.errors import UserError
from keras_transformer.pieces.language_marks import NO_CODES, Codes
from keras_transformer.pieces.normalization import is_blank
from keras_transformer.runs.inference import TEXT
from keras_transformer.text.cleaning import Cleaner

from ..workers.tf_config import Worker

WHOLE_TEXT = "the training text"  # its name in tables and messages

MOST_EXAMPLES = 3  # pairs that are kept for each reason why others like them were left out

Pair = tuple[str, str]


class CorpusError(UserError):
    """Data that cannot be used; the message says where, what was found and what to do."""


def no_fingerprint() -> dict:
    """What a Split without a fingerprint has in its place. Raises TypeError."""
    raise TypeError("This Split has no fingerprint, so nothing that is made of it can be kept.")


class Split:
    """One part of a corpus. Iterating yields its (source, target) pairs of strings, and reads them again each time.

    name: the configuration key of the split, for messages. read: returns an iterator over all pairs. A pair with an
    empty side teaches nothing, so it is left out and counted in `skipped`, by reason; `blank` has its number, from 1.
    A `cleaned` one leaves out more, and `examples` has some of those pairs by reason. All three are those of the latest
    iteration. Iterating raises CorpusError, at the end, if no pair is left.

    fingerprint: returns what decides the pairs, as a dict that JSON can hold; other pairs have another fingerprint. It
    raises CorpusError if a file of the split is missing.

    shards: the Splits that this one is divided into for several workers; by default it is its own only shard.

    mixed: the Splits of its weighted entries with their weights, if an epoch is to take shares of them; see Mixture.

    trees: of a treebank, the train.data.trees.Tree of each pair; none of other text.

    description: which part of its source it is, for report.md; "" if the configuration tells.

    parts: returns an iterator over the name of the part, such as "en to de", that each pair belongs to, those without
    text among them; it is empty if nobody names parts. documents: likewise the name of the document of each pair.
    ends_documents: whether a pair without text on either side ends a document; it is then not counted as skipped.

    told: the languages of its pairs; if its entries differ in them, those of each entry, and counts returns an iterator
    over the number of pairs of each, those without text among them.
    """

    trees: Sequence[Any] = ()
    description = ""
    ends_documents = False

    def __init__(
        self,
        name: str,
        read: Callable[[], Iterator[Pair]],
        fingerprint: Callable[[], dict] = no_fingerprint,
        shards: Iterable["Split"] = (),
        mixed: Iterable[tuple["Split", float]] = (),
        parts: Callable[[], Iterable[str]] = tuple,
        told: Iterable[Codes] = (NO_CODES,),
        counts: Callable[[], Iterable[int]] = tuple,
        documents: Callable[[], Iterable[str]] = tuple,
    ):
        self.documents = documents
        self.name = name
        self.parts = parts
        self.told = tuple(told)
        self._codes: Callable[[], Iterator[Codes]] = functools.partial(codes_of_pairs, self.told, counts)
        self.mixed = tuple(mixed)
        self.fingerprint = fingerprint
        self.shards = tuple(shards) or (self,)
        self.skipped = collections.Counter()
        self.blank: list[int] = []
        self.examples: dict[str, list[Pair]] = {}
        self._read = read
        self._cleaner: Callable[[], Cleaner] | None = None

    @classmethod
    def of_shards(cls, name: str, shards: Iterable["Split"]) -> "Split":
        """One Split of all pairs of `shards`, in this order."""
        shards = tuple(shards)
        if len(shards) == 1:
            return shards[0]
        return cls(name, lambda: iter(()), shards=shards, told=[codes for shard in shards for codes in shard.told])

    def in_memory(self) -> "Split":
        """This Split with its pairs in memory: they are read now, and never again."""
        raw, split = list(self._raw()), copy.copy(self)
        split._read, split._codes = ([pair[side] for pair in raw].__iter__ for side in (0, 1))
        split.skipped, split.blank = collections.Counter(), []
        return split

    def cleaned(self, settings: Mapping[str, Any], tags: tuple[str, ...]) -> "Split":
        """This Split without the pairs that a Cleaner of these settings and tags drops, in each shard and each part."""
        split = copy.copy(self)
        split.skipped, split.blank, split.examples = collections.Counter(), [], {}
        split._cleaner = lambda: Cleaner(settings, tags)
        split.fingerprint = lambda: {**self.fingerprint(), "clean": dict(settings)}
        is_whole = self.shards == (self,)
        split.shards = (split,) if is_whole else tuple(shard.cleaned(settings, tags) for shard in self.shards)
        split.mixed = tuple((part.cleaned(settings, tags), weight) for part, weight in self.mixed)
        return split

    def _raw(self) -> Iterator[tuple[Pair, Codes]]:
        """Return an iterator over all pairs with their languages, those without text among them."""
        if len(self.shards) > 1:
            return itertools.chain.from_iterable(shard._raw() for shard in self.shards)
        return zip(self._read(), self._codes(), strict=False)  # the languages of all pairs may be more than are read

    def __iter__(self) -> Iterator[Pair]:
        return (pair for pair, _ in self.with_codes())

    def with_codes(self) -> Iterator[tuple[Pair, Codes]]:
        """Yield its pairs with their languages."""
        self.skipped.clear()
        self.blank.clear()
        self.examples.clear()
        is_empty, cleaner = True, self._cleaner() if self._cleaner else None
        for number, ((source, target), codes) in enumerate(self._raw(), 1):
            if is_blank(source) or is_blank(target):
                if not (self.ends_documents and is_blank(source) and is_blank(target)):
                    self.skipped["empty source" if is_blank(source) else "empty target"] += 1
                self.blank.append(number)
            elif cleaner and (reason := cleaner.reason_to_drop(source, target)):
                self.skipped[reason] += 1
                if len(examples := self.examples.setdefault(reason, [])) < MOST_EXAMPLES:
                    examples.append((source, target))
            else:
                is_empty = False
                yield (source, target), codes
        if is_empty:
            raise CorpusError(f"{self.name} has no sentence pair left. Skipped: {skipped_sentence(self.skipped)}.")


def codes_of_pairs(told: Sequence[Codes], counts: Callable[[], Iterable[int]]) -> Iterator[Codes]:
    """Return an iterator over the languages of each pair: see Split. It does not end if all pairs have the same."""
    if len(set(told)) == 1:
        return itertools.repeat(told[0])
    return itertools.chain.from_iterable(map(itertools.repeat, told, counts()))


def skipped_sentence(skipped: collections.Counter) -> str:
    """Counts by reason as words: "12 empty source, 3 longer than row_length"; "none" for none."""
    return ", ".join(f"{count:,} {reason}" for reason, count in sorted(skipped.items())) or "none"


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Three splits and the names of the two languages."""

    train: Split
    validation: Split
    test: Split | None  # None: the data has no test set
    source_language: str
    target_language: str
    symbols: tuple[str, ...] = ()  # texts that are one piece of the tokenizer each: tags <2de>, brackets " (NP"
    outputs: str = TEXT  # what a model of it writes


def own_shards(split: Split, worker: Worker) -> tuple[Split, ...]:
    """The Splits that this worker reads: its contiguous part of several shards, or the only one.

    Raises CorpusError if a file of theirs is missing.
    """
    shards = split.shards
    if len(shards) > 1:
        count = len(shards) // worker.count
        shards = shards[worker.index * count : (worker.index + 1) * count]
    for shard in shards:
        shard.fingerprint()
    return shards
