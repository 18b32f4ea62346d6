"""Which attention of a model aligns the words of sources and their translations, computed by TensorFlow."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_transformer.pieces.batching import batches_by_length
from keras_transformer.pieces.language_marks import Marks
from keras_transformer.pieces.sources import padded
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.pieces.translation import Translation
from keras_transformer.runs.aligned_by import LAST_BUT_ONE, AlignedBy
from keras_transformer.runs.kinds import config_of
from keras_transformer.text.word_alignment import Sequences, WordAligner
from keras_transformer.translation.forced import ForcedDecoder
from keras_transformer.translation.traced import TracedAgain

TOKENS_AT_ONCE = 4096  # padded tokens of one side, whose attention is computed together


def of_reading_steps(attention):
    """Return of each token the attention of the step that reads it, which is the one after that which writes it.

    Shapes: attention float32 (B, T, S) of the steps, the last of which reads no token of the output -> the same.
    """
    return tf.concat([attention[:, 1:], tf.zeros_like(attention[:, :1])], axis=1)


def attention_by(ways: Sequence[AlignedBy], transformer: keras.Model) -> Callable:
    """Return a function of ids of both sides, int32 (B, S) and (B, T), to the attention of each way.

    It is float32 (B, ways, T, S): the mean of the heads of a block that the model has, in the step that a way tells.
    """
    forced = ForcedDecoder(transformer)

    def attention(source_ids, output_ids):
        of_blocks = forced(source_ids, output_ids).attention
        of_ways = []
        for way in ways:
            weights = tf.cast(of_blocks[f"decoder_block_{way.block}/memory"], tf.float32)
            of_steps = tf.reduce_mean(weights, axis=1)
            of_ways.append(of_reading_steps(of_steps) if way.reads else of_steps)
        return tf.stack(of_ways, axis=1)

    return attention


class Aligner:
    """Aligns the words of sources and their translations by the attention that `aligned_by` tells: see WordAligner.

    Sources are read up to `most` tokens, EOS included. Raises ConfigError for a block that the model does not have.
    """

    def __init__(
        self,
        transformer: keras.Model,
        tokenizer: Tokenizer,
        most: int,
        aligned_by: AlignedBy = LAST_BUT_ONE,
    ):
        self._transformer, self._words = transformer, WordAligner(tokenizer, most)
        self._by = aligned_by.in_model(config_of(transformer).memory_attentions)

    @property
    def aligns(self) -> bool:
        """Whether the model attends to its source, so that there are alignments."""
        return self._by.block > 0

    def _attention(self, ways: Sequence[AlignedBy]) -> Callable:
        batch = tf.TensorSpec((None, None), tf.int32)

        def trace() -> Callable:
            attention = attention_by(ways, self._transformer)
            return tf.function(attention, input_signature=[batch, batch], autograph=False)

        return TracedAgain([self._transformer], trace)

    @functools.cached_property
    def _attention_of_model(self) -> Callable:
        return self._attention((self._by,))

    def align_lines(
        self, pairs: Sequence[tuple[str, Translation]], marks: Sequence[Marks] = ()
    ) -> list[list[tuple[int, int]]]:
        """Return the alignment of each source line and a translation that was found for it, as `align` does."""
        if not self.aligns:
            return [[] for _ in pairs]
        [alignments] = self._words.align_lines(in_batches(self._attention_of_model), pairs, marks)
        return alignments

    def align_lines_by(
        self, ways: Sequence[AlignedBy], pairs: Sequence[tuple[str, Translation]], marks: Sequence[Marks] = ()
    ) -> list[list[list[tuple[int, int]]]]:
        """Return the same by each of several ways, whose blocks the model has."""
        return self._words.align_lines(in_batches(self._attention(ways)), pairs, marks, len(ways))

    def align(self, sources: Sequences, outputs: Sequences, marks: Sequence[Marks] = ()) -> list[list[tuple[int, int]]]:
        """Return pairs of word numbers, of the source and of the output, for each sentence; [] without attention.

        Both sides are token ids, EOS last, with the marks of their languages, which are of no word.
        """
        if not self.aligns:
            return [[] for _ in sources]
        [alignments] = self._words.align(in_batches(self._attention_of_model), sources, outputs, marks)
        return alignments


def in_batches(attention: Callable) -> Callable[[Sequences, Sequences], list[Any]]:
    """Return what a WordAligner asks, of an attention that is computed of many pairs together."""

    def attend(sources: Sequences, outputs: Sequences) -> list[Any]:
        lengths = {number: max(map(len, pair)) for number, pair in enumerate(zip(sources, outputs, strict=True))}
        found: list[Any] = [None] * len(sources)
        for batch in batches_by_length(lengths, max(1, TOKENS_AT_ONCE // max(lengths.values(), default=1))):
            ids = (padded([list(side[number]) for number in batch]) for side in (sources, outputs))
            for number, of_pair in zip(batch, attention(*ids).numpy(), strict=True):
                found[number] = of_pair  # (ways, T, S), padding included
        return found

    return attend
