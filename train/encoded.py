"""A split as ids: flat arrays that hold millions of pairs without a Python object for each."""

import collections
import dataclasses
import itertools

import numpy as np

from keras_transformer.tokens import EOS
from train.sources.split import CorpusError, skipped_sentence

CHUNK = 10_000  # pairs that are encoded at once


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
        ids = np.fromiter(itertools.chain.from_iterable(lists), dtype, lengths.sum())
        return cls(ids, np.concatenate([[0], np.cumsum(lengths)]))

    @classmethod
    def joined(cls, parts):
        lengths = np.concatenate([part.lengths for part in parts])
        return cls(np.concatenate([part.ids for part in parts]), np.concatenate([[0], np.cumsum(lengths)]))


@dataclasses.dataclass(frozen=True)
class EncodedPairs:
    """The pairs of a split that can be used, and a count of those that cannot."""

    source: Sentences
    target: Sentences
    skipped: collections.Counter  # pairs by reason, those that the split skipped included

    def __len__(self):
        return len(self.source)

    @property
    def source_tokens(self):
        return len(self.source.ids)

    @property
    def target_tokens(self):
        return len(self.target.ids)


def encode_corpus(split, tokenizer, row_length):
    """Split -> EncodedPairs. A pair with a side of more than `row_length` tokens, EOS included, is left out.

    Raises CorpusError if no pair is left.
    """
    dtype = np.uint16 if tokenizer.vocab_size <= 2**16 else np.int32
    reason = f"longer than {row_length} tokens"
    too_long = 0
    sources, targets = [], []
    pairs = iter(split)
    while chunk := list(itertools.islice(pairs, CHUNK)):
        encoded = [
            (source + [EOS], target + [EOS])
            for source, target in zip(*map(tokenizer.encode_batch, zip(*chunk, strict=True)), strict=True)
            if len(source) < row_length and len(target) < row_length
        ]
        too_long += len(chunk) - len(encoded)
        sources.append(Sentences.of([source for source, _ in encoded], dtype))
        targets.append(Sentences.of([target for _, target in encoded], dtype))
    skipped = split.skipped + collections.Counter({reason: too_long})
    encoded = EncodedPairs(Sentences.joined(sources), Sentences.joined(targets), skipped)
    if not len(encoded):
        raise CorpusError(
            f"{split.name} has no sentence pair left. Skipped: {skipped_sentence(skipped)}. Raise training.row_length."
        )
    return encoded
