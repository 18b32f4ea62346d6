"""A split as ids: flat arrays that hold millions of pairs without a Python object for each."""

import collections
import concurrent.futures
import dataclasses
import hashlib
import itertools
import os

import numpy as np

from keras_transformer.tokens import EOS
from train.data.corpus import CorpusError, skipped_sentence
from train.data.packing import offsets_of

CHUNK = 10_000  # pairs that are encoded at once
THREADS = min(8, os.cpu_count() or 1)  # that encode; more would wait for the one that reads


@dataclasses.dataclass(frozen=True)
class Sentences:
    """Sentence i is `ids[offsets[i] : offsets[i + 1]]`: its pieces and EOS."""

    ids: np.ndarray  # uint16 or int32 (tokens,)
    offsets: np.ndarray  # int64 (sentences + 1,)

    def __len__(self):
        return len(self.offsets) - 1

    def __getitem__(self, index):
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self):
        """int64 (sentences,): tokens of each sentence, EOS included."""
        return np.diff(self.offsets)

    @classmethod
    def of(cls, lists, dtype):
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        return cls(np.fromiter(itertools.chain.from_iterable(lists), dtype, lengths.sum()), offsets_of(lengths))

    @classmethod
    def joined(cls, parts):
        lengths = np.concatenate([part.lengths for part in parts])
        return cls(np.concatenate([part.ids for part in parts]), offsets_of(lengths))


@dataclasses.dataclass(frozen=True)
class EncodedPairs:
    """The pairs of a split that can be used, and a count of those that cannot."""

    source: Sentences
    target: Sentences
    skipped: collections.Counter  # pairs by reason, those that the split skipped included
    keys: np.ndarray | None = None  # uint64 (pairs,), `pair_keys` of the text; None: not asked for

    def __len__(self):
        return len(self.source)

    @property
    def source_tokens(self):
        return len(self.source.ids)

    @property
    def target_tokens(self):
        return len(self.target.ids)


class EncodedShards:
    """The EncodedPairs of several parts of a corpus, counted together."""

    def __init__(self, shards):
        self.shards = tuple(shards)
        self.source_tokens = sum(shard.source_tokens for shard in self.shards)
        self.target_tokens = sum(shard.target_tokens for shard in self.shards)
        self.skipped = sum((shard.skipped for shard in self.shards), collections.Counter())

    def __len__(self):
        return sum(map(len, self.shards))


def encode_corpus(split, tokenizer, row_length, source_row_length=None):
    """Split -> EncodedPairs in memory. A pair with a side that is longer than a row, EOS included, is left out.

    source_row_length: None for `row_length`. Raises CorpusError if no pair is left.
    """
    chunks = list(encoded_chunks(split, tokenizer, row_length, source_row_length))
    skipped = sum((chunk.skipped for chunk in chunks), collections.Counter()) + split.skipped
    if not any(map(len, chunks)):
        raise nothing_left(split, skipped)
    sides = (Sentences.joined([getattr(chunk, side) for chunk in chunks]) for side in ("source", "target"))
    return EncodedPairs(*sides, skipped, np.concatenate([chunk.keys for chunk in chunks]))


def encoded_chunks(split, tokenizer, row_length, source_row_length=None):
    """Yield EncodedPairs of up to `CHUNK` pairs: those that can be used, and the count of those too long.

    Those that the split itself leaves out are in `split.skipped` at the end. Chunks are encoded in threads, since
    SentencePiece lets go of Python's lock; as many are in memory as there are threads.
    """
    pairs, pending = iter(split), collections.deque()
    with concurrent.futures.ThreadPoolExecutor(THREADS) as threads:
        while chunk := list(itertools.islice(pairs, CHUNK)):
            pending.append(threads.submit(_encode, chunk, tokenizer, row_length, source_row_length or row_length))
            if len(pending) > THREADS:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def _encode(pairs, tokenizer, row_length, source_row_length):
    dtype = np.uint16 if tokenizer.vocab_size <= 2**16 else np.int32
    encoded = zip(*map(tokenizer.encode_batch, zip(*pairs, strict=True)), pair_keys(pairs).tolist(), strict=True)
    fitting = [
        (source + [EOS], target + [EOS], key)
        for source, target, key in encoded
        if len(source) < source_row_length and len(target) < row_length
    ]
    sources, targets, keys = zip(*fitting, strict=True) if fitting else ((), (), ())
    return EncodedPairs(
        Sentences.of(sources, dtype),
        Sentences.of(targets, dtype),
        collections.Counter({_too_long(row_length, source_row_length): len(pairs) - len(fitting)}),
        np.array(keys, np.uint64),
    )


def pair_keys(pairs):
    """uint64 (pairs,): equal for equal pairs. Two different ones agree once in 2^64, so that millions may be kept."""
    digests = (
        hashlib.blake2b(f"{source}\n{target}".encode(), digest_size=8).digest()  # no sentence holds a line feed
        for source, target in pairs
    )
    return np.frombuffer(b"".join(digests), dtype=np.uint64)


def nothing_left(split, skipped):
    return CorpusError(
        f"{split.name} has no sentence pair left. Skipped: {skipped_sentence(skipped)}. Raise training.row_length."
    )


def _too_long(row_length, source_row_length):
    if source_row_length == row_length:
        return f"longer than {row_length} tokens"
    return f"longer than {source_row_length} source or {row_length} target tokens"
