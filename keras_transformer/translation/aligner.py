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
from keras_transformer.runs.aligned_by import LAST_BUT_ONE, AlignedBy
from keras_transformer.runs.kinds import config_of
from keras_transformer.translation.forced import ForcedDecoder
from keras_transformer.translation.traced import TracedAgain

TOKENS_AT_ONCE = 4096  # padded tokens of one side, whose attention is computed together


def of_reading_steps(attention):
    """Return of each token the attention of the step that reads it, which is the one after that which writes it.

    Shapes: attention float32 (B, T, S) of the steps, the last of which reads no token of the output -> the same.
    """
    return tf.concat([attention[:, 1:], tf.zeros_like(attention[:, :1])], axis=1)


class Aligner:
    """Aligns the words of sources and their translations: each word with the one that it attends to most.

    A word's attention is the sum over its pieces, in the mean of the heads of the block that `aligned_by` tells.
    Sources are read up to `most` tokens, EOS included. Raises ConfigError for a block that the model does not have.
    """

    def __init__(
        self,
        transformer: keras.Model,
        tokenizer: Tokenizer,
        most: int,
        aligned_by: AlignedBy = LAST_BUT_ONE,
    ):
        self._transformer, self._tokenizer, self._most = transformer, tokenizer, most
        self._by = aligned_by.in_model(config_of(transformer).memory_attentions)

    @property
    def aligns(self) -> bool:
        """Whether the model attends to its source, so that there are alignments."""
        return self._by.block > 0

    @functools.cached_property
    def _starts_word(self):
        return np.array([piece.startswith(SPACE) for piece in self._tokenizer.pieces()])

    def _attention(self, ways: tuple[AlignedBy, ...]) -> Callable:
        """A function of ids of both sides, int32 (B, S) and (B, T), to the attention of each way, float32 (B, T, S)."""
        forced, batch = ForcedDecoder(self._transformer), tf.TensorSpec((None, None), tf.int32)

        def attention(source_ids, output_ids):
            of_blocks = forced(source_ids, output_ids).attention
            of_ways = []
            for way in ways:
                weights = tf.cast(of_blocks[f"decoder_block_{way.block}/memory"], tf.float32)
                of_steps = tf.reduce_mean(weights, axis=1)
                of_ways.append(of_reading_steps(of_steps) if way.reads else of_steps)
            return of_ways

        def trace() -> Callable:
            return tf.function(attention, input_signature=[batch, batch], autograph=False)

        return TracedAgain([self._transformer], trace)

    @functools.cached_property
    def _attention_of_model(self) -> Callable:
        return self._attention((self._by,))

    def align_lines(
        self, pairs: Sequence[tuple[str, Translation]], marks: Sequence[Marks] = ()
    ) -> list[list[tuple[int, int]]]:
        """Return the alignment of each source line and a translation that was found for it, as `align` does."""
        return self.align(*self._ids(pairs, marks))

    def align_lines_by(
        self, ways: Sequence[AlignedBy], pairs: Sequence[tuple[str, Translation]], marks: Sequence[Marks] = ()
    ) -> list[list[list[tuple[int, int]]]]:
        """Return the same by each of several ways, whose blocks the model has."""
        return self._aligned(len(ways), self._attention(tuple(ways)), *self._ids(pairs, marks))

    def _ids(self, pairs: Sequence[tuple[str, Translation]], marks: Sequence[Marks]) -> tuple[list, list, list[Marks]]:
        """Return the token ids of both sides of each pair, and its marks."""
        encoded = self._tokenizer.encode_batch(line for line, _ in pairs)
        of_lines = list(marks) or [NO_MARKS] * len(pairs)
        sources = [of_line.around(ids, self._most) for ids, of_line in zip(encoded, of_lines, strict=True)]
        outputs = [
            translation.ids or of_line.before(self._tokenizer.encode_target(translation.text))  # of a part of an output
            for (_, translation), of_line in zip(pairs, of_lines, strict=True)
        ]
        return sources, outputs, of_lines

    def align(
        self, sources: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]], marks: Sequence[Marks] = ()
    ) -> list[list[tuple[int, int]]]:
        """Return pairs of word numbers, of the source and of the output, for each sentence; [] without attention.

        Both sides are token ids, EOS last, with the marks of their languages, which are of no word.
        """
        if not self.aligns:
            return [[] for _ in sources]
        marks = marks or [NO_MARKS] * len(sources)
        [alignments] = self._aligned(1, self._attention_of_model, sources, outputs, marks)
        return alignments

    def _aligned(
        self,
        ways: int,
        attention: Callable,
        sources: Sequence[Sequence[int]],
        outputs: Sequence[Sequence[int]],
        marks: Sequence[Marks],
    ) -> list[list[list[tuple[int, int]]]]:
        """Return the alignments of all sentences by each of so many ways, whose `attention` this is."""
        alignments: list[list[list[tuple[int, int]]]] = [[[] for _ in sources] for _ in range(ways)]
        lengths = {
            number: max(len(source), len(output))
            for number, (source, output, (first, last, opening)) in enumerate(zip(sources, outputs, marks, strict=True))
            if len(source) > 1 + len(first) + len(last) and len(output) > 1 + len(opening)
        }
        for batch in batches_by_length(lengths, max(1, TOKENS_AT_ONCE // max(lengths.values(), default=1))):
            source_ids, output_ids = (padded([list(side[number]) for number in batch]) for side in (sources, outputs))
            for of_way, weights in zip(alignments, attention(source_ids, output_ids), strict=True):
                for of_row, number in zip(weights.numpy(), batch, strict=True):
                    (first, last, opening), source, output = marks[number], sources[number], outputs[number]
                    words = slice(len(first), len(source) - len(last)), slice(len(opening), len(output))
                    of_words = of_row[words[1], words[0]]
                    of_way[number] = self._of_sentence(of_words, source[words[0]], output[words[1]])
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
