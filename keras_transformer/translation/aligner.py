"""Which word of a source each word of its translation comes from, by the attention of the decoder."""

import functools
from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.ground.tokens import EOS
from keras_transformer.pieces.batching import batches_by_length
from keras_transformer.pieces.language_marks import NO_MARKS, Marks
from keras_transformer.pieces.normalization import SPACE
from keras_transformer.pieces.sources import padded
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.pieces.translation import Translation
from keras_transformer.runs.kinds import config_of
from keras_transformer.translation.forced import ForcedDecoder
from keras_transformer.translation.traced import TracedAgain

TOKENS_AT_ONCE = 4096  # padded tokens of one side, whose attention is computed together


def alignment_layer(attentions: int) -> int:
    """Return the decoder block, counted from 1, that aligns words best: the last but one (Garg et al. 2019).

    `attentions`: blocks that attend to the source; 0 for none.
    """
    return max(min(1, attentions), attentions - 1)


class Aligner:
    """Aligns the words of sources and their translations: each word with the one that it attends to most.

    A word's attention is the sum over its pieces, in the mean of the heads of `alignment_layer`. Sources are read up to
    `most` tokens, EOS included.
    """

    def __init__(self, transformer: keras.Model, tokenizer: Tokenizer, most: int):
        self._transformer, self._tokenizer, self._most = transformer, tokenizer, most
        self._layer = alignment_layer(config_of(transformer).memory_attentions)

    @property
    def aligns(self) -> bool:
        """Whether the model attends to its source, so that there are alignments."""
        return self._layer > 0

    @functools.cached_property
    def _starts_word(self):
        return np.array([piece.startswith(SPACE) for piece in self._tokenizer.pieces()])

    @functools.cached_property
    def _attention(self):
        """A function of ids of both sides, int32 (B, S) and (B, T), to the attention, float32 (B, T, S)."""
        forced, batch = ForcedDecoder(self._transformer), tf.TensorSpec((None, None), tf.int32)

        def attention(source_ids, output_ids):
            weights = forced(source_ids, output_ids).attention[f"decoder_block_{self._layer}/memory"]
            return tf.reduce_mean(tf.cast(weights, tf.float32), axis=1)

        def trace() -> Callable:
            return tf.function(attention, input_signature=[batch, batch], autograph=False)

        return TracedAgain([self._transformer], trace)

    def align_lines(
        self, pairs: Sequence[tuple[str, Translation]], marks: Sequence[Marks] = ()
    ) -> list[list[tuple[int, int]]]:
        """Return the alignment of each source line and a translation that was found for it, as `align` does."""
        encoded = self._tokenizer.encode_batch(line for line, _ in pairs)
        of_lines = marks or [NO_MARKS] * len(pairs)
        sources = [of_line.around(ids, self._most) for ids, of_line in zip(encoded, of_lines, strict=True)]
        outputs = [
            translation.ids or of_line.before(self._tokenizer.encode_target(translation.text))  # of a part of an output
            for (_, translation), of_line in zip(pairs, of_lines, strict=True)
        ]
        return self.align(sources, outputs, of_lines)

    def align(
        self, sources: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]], marks: Sequence[Marks] = ()
    ) -> list[list[tuple[int, int]]]:
        """Return pairs of word numbers, of the source and of the output, for each sentence; [] without attention.

        Both sides are token ids, EOS last, with the marks of their languages, which are of no word.
        """
        marks = marks or [NO_MARKS] * len(sources)
        alignments: list[list[tuple[int, int]]] = [[] for _ in sources]
        if not self._layer:
            return alignments
        lengths = {
            number: max(len(source), len(output))
            for number, (source, output, (first, last, opening)) in enumerate(zip(sources, outputs, marks, strict=True))
            if len(source) > 1 + len(first) + len(last) and len(output) > 1 + len(opening)
        }
        for batch in batches_by_length(lengths, max(1, TOKENS_AT_ONCE // max(lengths.values(), default=1))):
            source_ids, output_ids = (padded([list(side[number]) for number in batch]) for side in (sources, outputs))
            attention = self._attention(source_ids, output_ids).numpy()
            for row, number in enumerate(batch):
                (first, last, opening), source, output = marks[number], sources[number], outputs[number]
                words = slice(len(first), len(source) - len(last)), slice(len(opening), len(output))
                of_words = attention[row, words[1], words[0]]
                alignments[number] = self._of_sentence(of_words, source[words[0]], output[words[1]])
        return alignments

    def _of_sentence(self, attention, source: Sequence[int], output: Sequence[int]) -> list[tuple[int, int]]:
        of_source, of_output = self._membership(source), self._membership(output)  # (S, V), (T, W)
        weights = of_output.T @ attention @ of_source
        return [(int(best), word) for word, best in enumerate(weights.argmax(axis=1))]

    def _membership(self, ids: Sequence[int]):
        """Return which word each token belongs to: (L, words), 0 for EOS."""
        tokens = np.array(ids)
        is_start = self._starts_word[tokens]
        is_start[0] = True
        is_start &= tokens != EOS
        words = np.cumsum(is_start) - 1
        return (words[:, None] == np.arange(words[-1] + 1)) * (tokens != EOS)[:, None].astype(np.float32)
