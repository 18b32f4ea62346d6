"""Text to ids: flat arrays that hold millions of sentence pairs without a Python object for each."""

import collections
import concurrent.futures
import dataclasses
import hashlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_transformer.pieces.language_marks import NO_MARKS, Codes, Languages, Marks

from ..config.training import RowLengths
from .corpus import CorpusError, Pair, Split, skipped_sentence
from .mixing import Mixture
from .packing import offsets_of

if TYPE_CHECKING:  # benchmarks/speed/on_accelerator packs batches where SentencePiece is not installed
    from keras_transformer.pieces.tokenizer import Tokenizer

CHUNK = 10_000  # pairs that one thread encodes at once
THREADS = min(8, os.cpu_count() or 1)  # more threads would wait for the one that reads
MarksOf = Callable[[Codes], Marks]  # from the languages of a pair to the tokens that tell the model


def unmarked(codes: Codes) -> Marks:
    """The MarksOf of a model that is told no languages."""
    return NO_MARKS


@dataclasses.dataclass(frozen=True)
class Sentences:
    """Sentence i is `ids[offsets[i] : offsets[i + 1]]`: its pieces and EOS, and the marks of its languages."""

    ids: np.ndarray  # uint16 or int32 (tokens,)
    offsets: np.ndarray  # int64 (sentences + 1,)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """int64 (sentences,): tokens of each sentence, EOS included."""
        return np.diff(self.offsets)

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]], dtype: type) -> "Sentences":
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        return cls(np.fromiter(itertools.chain.from_iterable(lists), dtype, lengths.sum()), offsets_of(lengths))

    @classmethod
    def joined(cls, parts: Sequence["Sentences"]) -> "Sentences":
        lengths = np.concatenate([part.lengths for part in parts])
        return cls(np.concatenate([part.ids for part in parts]), offsets_of(lengths))


def no_keys() -> np.ndarray:
    """uint64 (0,)"""
    return np.empty(0, np.uint64)


@dataclasses.dataclass(frozen=True)
class EncodedPairs:
    """The usable pairs of a split, and how many were skipped."""

    source: Sentences
    target: Sentences
    skipped: collections.Counter  # pairs by reason, those that the split skipped included
    keys: np.ndarray = dataclasses.field(default_factory=no_keys)  # uint64 (pairs,), `pair_keys`; none if not of text
    mixture: Mixture | None = None  # what an epoch takes of them; None: each pair once
    too_long: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # pairs by `row_needed`
    examples: dict[str, list[Pair]] = dataclasses.field(default_factory=dict)  # of pairs that data.clean drops

    def __len__(self) -> int:
        return len(self.source)

    @property
    def source_tokens(self) -> int:
        return len(self.source.ids)

    @property
    def target_tokens(self) -> int:
        return len(self.target.ids)

    def identical(self, languages: Languages) -> int:
        """How many pairs have a target that is their source, but for the pieces of these languages."""
        source, target, count = self.source, self.target, 0
        first, opening = bool(languages.source_first), bool(languages.target_first)
        sources, targets = source.offsets[:-1] + first, target.offsets[:-1] + opening  # where their text begins
        lengths = source.lengths - first - bool(languages.source_last)
        pairs, place = np.flatnonzero(lengths == target.lengths - opening), 0  # they agree in what is before this place
        while len(pairs):
            pairs = pairs[source.ids[sources[pairs] + place] == target.ids[targets[pairs] + place]]
            place += 1
            is_over = lengths[pairs] == place
            count += int(np.count_nonzero(is_over))
            pairs = pairs[~is_over]
        return count


class EncodedShards:
    """The EncodedPairs of several shards of a corpus, with the sums of their counts."""

    def __init__(self, shards: Iterable[EncodedPairs]):
        self.shards = tuple(shards)
        self.source_tokens = sum(shard.source_tokens for shard in self.shards)
        self.target_tokens = sum(shard.target_tokens for shard in self.shards)
        self.skipped = sum((shard.skipped for shard in self.shards), collections.Counter())
        self.too_long = sum((shard.too_long for shard in self.shards), collections.Counter())

    def __len__(self) -> int:
        return sum(map(len, self.shards))


def encode_corpus(
    split: Split, tokenizer: "Tokenizer", row_lengths: RowLengths, marks_of: MarksOf = unmarked
) -> EncodedPairs:
    """Encode a split in memory. A pair is skipped if one of its sides, with EOS and marks, is longer than a row.

    Raises CorpusError if no pair is left.
    """
    chunks = list(encoded_chunks(split, tokenizer, row_lengths, marks_of))
    skipped = sum((chunk.skipped for chunk in chunks), collections.Counter()) + split.skipped
    too_long = sum((chunk.too_long for chunk in chunks), collections.Counter())
    if not any(map(len, chunks)):
        raise nothing_left(split, skipped, too_long)
    source, target = (Sentences.joined([getattr(chunk, side) for chunk in chunks]) for side in ("source", "target"))
    return EncodedPairs(source, target, skipped, np.concatenate([chunk.keys for chunk in chunks]), too_long=too_long)


def encoded_chunks(
    split: Split, tokenizer: "Tokenizer", row_lengths: RowLengths, marks_of: MarksOf = unmarked
) -> Iterator[EncodedPairs]:
    """Yield EncodedPairs of up to `CHUNK` pairs of the split, each with the count of its pairs that are too long.

    The pairs that the split itself skips are in `split.skipped` at the end. Chunks are encoded in threads, because
    SentencePiece releases the GIL; as many chunks are in memory as there are threads.
    """
    pairs, pending = split.with_codes(), collections.deque()
    with concurrent.futures.ThreadPoolExecutor(THREADS) as threads:
        while chunk := list(itertools.islice(pairs, CHUNK)):
            pending.append(threads.submit(_encode, chunk, tokenizer, row_lengths, marks_of))
            if len(pending) > THREADS:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def _encode(
    pairs_with_codes: list[tuple[Pair, Codes]], tokenizer: "Tokenizer", row_lengths: RowLengths, marks_of: MarksOf
) -> EncodedPairs:
    dtype = np.uint16 if tokenizer.vocab_size <= 2**16 else np.int32
    pairs, codes = zip(*pairs_with_codes, strict=True)
    sources, targets = zip(*pairs, strict=True)
    ids = tokenizer.encode_batch(sources), tokenizer.encode_target_batch(targets)
    encoded = zip(*ids, pair_keys(pairs).tolist(), map(marks_of, codes), strict=True)
    fitting, too_long = [], collections.Counter()
    for source_ids, target_ids, key, marks in encoded:
        source, target = marks.around(source_ids), marks.before(target_ids)
        if len(source) <= row_lengths.source and len(target) <= row_lengths.target:
            fitting.append((source, target, key))
        else:
            too_long[row_needed(len(source), len(target), row_lengths)] += 1
    sources, targets, keys = zip(*fitting, strict=True) if fitting else ((), (), ())
    return EncodedPairs(
        Sentences.of(sources, dtype),
        Sentences.of(targets, dtype),
        collections.Counter({too_long_for(row_lengths): too_long.total()}),
        np.array(keys, np.uint64),
        too_long=too_long,
    )


def row_needed(source: int, target: int, row_lengths: RowLengths) -> int:
    """The smallest row_length at which a pair of so many tokens fits, if source_row_length keeps its ratio to it.

    At the row_length n, source_row_length is n * source / target of `row_lengths`, rounded up.
    """
    return max((source - 1) * row_lengths.target // row_lengths.source + 1, target)


def row_holding(too_long: collections.Counter, left_out: int = 0) -> int:
    """The smallest row_length at which at most `left_out` of the pairs that are too long stay so."""
    for length in sorted(too_long, reverse=True):
        if too_long[length] > left_out:
            return length
        left_out -= too_long[length]
    raise ValueError(f"all {too_long.total()} pairs may be left out")


def pair_keys(pairs: Iterable[tuple[str, str]]) -> np.ndarray:
    """uint64 (pairs,): equal for equal pairs; two different pairs agree with a probability of 2^-64."""
    digests = (
        hashlib.blake2b(f"{source}\n{target}".encode(), digest_size=8).digest()  # no sentence holds a line feed
        for source, target in pairs
    )
    return np.frombuffer(b"".join(digests), dtype=np.uint64)


def nothing_left(split: Split, skipped: collections.Counter, too_long: collections.Counter) -> CorpusError:
    """The error of a split that has pairs, all of which are longer than a row."""
    advice = f"Raise training.row_length: {row_holding(too_long)} holds all of them."
    return CorpusError(f"{split.name} has no sentence pair left. Skipped: {skipped_sentence(skipped)}. {advice}")


def too_long_for(row_lengths: RowLengths) -> str:
    """The reason in `skipped` of a pair that is longer than a row."""
    if row_lengths.source == row_lengths.target:
        return f"longer than {row_lengths.target} tokens"
    return f"longer than {row_lengths.source} source or {row_lengths.target} target tokens"
