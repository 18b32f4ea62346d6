"""Subword regularisation: every epoch splits the words of the training text anew (Provilkov et al. 2020)."""

from collections.abc import Callable
from concurrent.futures import CancelledError

import numpy as np

from keras_transformer.pieces.tokenizer import Tokenizer

from ..config.training import RowLengths
from .encoding import EncodedPairs, Sentences
from .merges import Merges
from .packing import offsets_of, places_of

CHUNK = 10_000  # sentences that are drawn at once; with another number a run that goes on would draw others


class BpeDropout:
    """Draws other pieces for both sides of sentence pairs, each merge left out with the probability `rate` (section 3).

    The words are put together anew from the characters of their pieces, so the pairs are those that were encoded, and
    neither text files nor the cache are read again. A sentence keeps its pieces if the others would not fit into a row.
    What is drawn is a function of the pairs and the Generator, in every process. Raises TokenizerError for a tokenizer
    without merges.
    """

    def __init__(self, tokenizer: Tokenizer, rate: float, row_lengths: RowLengths):
        self.merges, self.rate, self.row_lengths = Merges(tokenizer), rate, row_lengths

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
        if not self.rate:
            return sentences
        parts = []
        for first in range(0, len(sentences), CHUNK):
            if gives_up():
                raise CancelledError("The epoch is not needed any more.")
            offsets = sentences.offsets[first : first + CHUNK + 1]
            parts.append(self.drawn(sentences.ids[offsets[0] : offsets[-1]], offsets - offsets[0], row_length, rng))
        return Sentences.joined(parts)

    def drawn(self, ids: np.ndarray, offsets: np.ndarray, row_length: int, rng: np.random.Generator) -> Sentences:
        """Draw pieces for sentences, whose `ids` (n,) begin at `offsets`; EOS, which ends each, is a word by itself."""
        starts = self.merges.words_of(ids)
        changed = self.merges.drawn(ids, starts, self.rate, rng)
        plain_lengths = np.diff(starts, append=len(ids))
        numbers = np.fromiter(changed, np.int64, len(changed))
        lengths = plain_lengths.copy()
        lengths[numbers] = [len(pieces) for pieces in changed.values()]

        first_words = np.searchsorted(starts, offsets)  # of each sentence; then the number of all words
        is_too_long = np.diff(offsets_of(lengths)[first_words]) > row_length
        keeps = np.repeat(is_too_long, np.diff(first_words))  # by word
        lengths = np.where(keeps, plain_lengths, lengths)
        numbers = numbers[~keeps[numbers]]

        begins = offsets_of(lengths)  # of each word in the new ids; then the number of all of them
        new_ids = np.empty(begins[-1], ids.dtype)
        is_plain = np.ones(len(starts), bool)
        is_plain[numbers] = False
        plain_lengths = lengths[is_plain]
        new_ids[places_of(begins[:-1][is_plain], plain_lengths)] = ids[places_of(starts[is_plain], plain_lengths)]
        pieces = [piece for number in numbers.tolist() for piece in changed[number]]
        new_ids[places_of(begins[:-1][numbers], lengths[numbers])] = pieces
        return Sentences(new_ids, begins[first_words])
