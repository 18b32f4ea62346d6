"""Subword regularisation: every epoch splits the words of the training text anew (Provilkov et al. 2020)."""

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError

import numpy as np

from keras_transformer.tokenizer import Tokenizer
from keras_transformer.tokens import EOS, UNK
from train.config import RowLengths
from train.data.encoding import CHUNK, EncodedPairs, Sentences


class BpeDropout:
    """Draws other pieces for both sides of sentence pairs, each merge left out with the probability `rate`.

    The text is decoded from the ids, so the pairs are those that were encoded, and neither text files nor the cache are
    read again. A sentence keeps its pieces if the others would not fit into a row, or if it contains UNK, which has no
    text to split.
    """

    def __init__(self, tokenizer: Tokenizer, rate: float, row_lengths: RowLengths):
        self.tokenizer, self.rate, self.row_lengths = tokenizer, rate, row_lengths

    def __call__(
        self, pairs: EncodedPairs, rng: np.random.Generator, gives_up: Callable[[], bool] = lambda: False
    ) -> EncodedPairs:
        """Return the same pairs, in the same order, in pieces that follow from `rng`.

        Raises CancelledError soon after `gives_up()` is true: a large corpus takes minutes.
        """
        source = self.redrawn(pairs.source, self.row_lengths.source, rng, gives_up)
        target = self.redrawn(pairs.target, self.row_lengths.target, rng, gives_up)
        return EncodedPairs(source, target, pairs.skipped, pairs.keys)

    def redrawn(
        self, sentences: Sentences, row_length: int, rng: np.random.Generator, gives_up: Callable[[], bool]
    ) -> Sentences:
        """Return one side in new pieces."""
        parts = []
        for first in range(0, len(sentences), CHUNK):
            if gives_up():
                raise CancelledError("The epoch is not needed any more.")
            plain = [sentences[index][:-1].tolist() for index in range(first, min(first + CHUNK, len(sentences)))]
            parts.append(Sentences.of(self.drawn(plain, row_length, rng), sentences.ids.dtype))
        return Sentences.joined(parts)

    def drawn(self, plain: Sequence[list[int]], row_length: int, rng: np.random.Generator) -> list[list[int]]:
        """Return the pieces drawn for sentences that have these ids, each with EOS."""
        drawn = self.tokenizer.sample_batch(self.tokenizer.decode_batch(plain), self.rate, int(rng.integers(2**32 - 1)))
        return [
            (new if len(new) < row_length and UNK not in old else old) + [EOS]
            for old, new in zip(plain, drawn, strict=True)
        ]
