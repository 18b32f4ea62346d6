"""Which word of a source each word of its translation comes from, by the attention of the decoder."""

import functools
from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.batching import batches_by_length
from keras_transformer.decoding.forced import ForcedDecoder
from keras_transformer.kinds import config_of
from keras_transformer.normalization import SPACE
from keras_transformer.sources import padded
from keras_transformer.tokens import EOS

TOKENS_AT_ONCE = 4096  # padded tokens of one side, whose attention is computed together


def alignment_layer(attentions: int) -> int:
    """Return the decoder block, counted from 1, that aligns words best: the last but one (Garg et al. 2019).

    `attentions`: blocks that attend to the source; 0 for none.
    """
    return max(min(1, attentions), attentions - 1)


class Aligner:
    """Aligns the words of sources and their translations: each word with the one that it attends to most.

    A word's attention is the sum over its pieces, in the mean of the heads of `alignment_layer`. `pieces`: the written
    form of every id.
    """

    def __init__(self, transformer: keras.Model, pieces: Sequence[str]):
        self._layer = alignment_layer(config_of(transformer).memory_attentions)
        self._starts_word = np.array([piece.startswith(SPACE) for piece in pieces])
        batch = tf.TensorSpec((None, None), tf.int32)
        attention = functools.partial(self._attention_of, ForcedDecoder(transformer) if self._layer else None)
        self._attention = tf.function(attention, input_signature=[batch, batch], autograph=False)

    def align(self, sources: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]]) -> list[list[tuple[int, int]]]:
        """Return pairs of word numbers, of the source and of the output, for each sentence; [] without attention.

        Both sides are token ids, EOS last.
        """
        alignments: list[list[tuple[int, int]]] = [[] for _ in sources]
        if not self._layer:
            return alignments
        lengths = {
            number: max(len(source), len(output))
            for number, (source, output) in enumerate(zip(sources, outputs, strict=True))
            if len(source) > 1 and len(output) > 1
        }
        for batch in batches_by_length(lengths, max(1, TOKENS_AT_ONCE // max(lengths.values(), default=1))):
            source_ids, output_ids = (padded([list(side[number]) for number in batch]) for side in (sources, outputs))
            attention = self._attention(source_ids, output_ids).numpy()
            for row, number in enumerate(batch):
                alignments[number] = self._of_sentence(attention[row], sources[number], outputs[number])
        return alignments

    def _attention_of(self, forced, source_ids, output_ids):
        return tf.reduce_mean(
            tf.cast(forced(source_ids, output_ids).attention[f"decoder_block_{self._layer}/memory"], tf.float32), axis=1
        )

    def _of_sentence(self, attention, source: Sequence[int], output: Sequence[int]) -> list[tuple[int, int]]:
        of_source, of_output = self._membership(source), self._membership(output)  # (S, V), (T, W)
        weights = of_output.T @ attention[: len(output), : len(source)] @ of_source
        return [(int(best), word) for word, best in enumerate(weights.argmax(axis=1))]

    def _membership(self, ids: Sequence[int]):
        """Return which word each token belongs to: (L, words), 0 for EOS."""
        ids = np.array(ids)
        is_start = self._starts_word[ids]
        is_start[0] = True
        is_start &= ids != EOS
        words = np.cumsum(is_start) - 1
        return (words[:, None] == np.arange(words[-1] + 1)) * (ids != EOS)[:, None].astype(np.float32)
