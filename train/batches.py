"""Batches of ids and segments: packed rows for training, padded rows for evaluation.

A Batch is a dict of int32 arrays of shape (rows, length):

    source_ids        pieces and EOS of each sentence            7 9 EOS 8 EOS PAD
    source_segments   1..n for the n pairs of a row, 0: padding   1 1  1  2  2   0
    target_ids        what the decoder is given: BOS, pieces      BOS 5 6 BOS 4 PAD
    target_segments                                                1  1 1  2  2  0
    labels            what it shall predict: pieces, EOS          5 6 EOS 4 EOS PAD
"""

import functools

import numpy as np

from keras_transformer.tokens import BOS, PAD
from train.encoded import EncodedPairs, encode_corpus
from train.packing import Packing, pack
from train.share import Share

__all__ = ["EncodedPairs", "PackedBatches", "encode_corpus", "padded_batches", "training_dataset"]

FIELDS = ("source_ids", "source_segments", "target_ids", "target_segments", "labels")


class PackedBatches:
    """Endless training batches of one static shape; `batch(step)` depends on the arguments and the step alone.

    pairs: EncodedPairs, none longer than row_length. tokens_per_batch: source positions of a batch, and as many
    target positions; it is rounded down to whole rows. An epoch is `steps_per_epoch` batches. Each epoch is shuffled
    and packed anew, every pair in it once; the rows that its last batch lacks are the first ones of the epoch again.
    """

    def __init__(self, pairs, tokens_per_batch, row_length, seed, share=Share()):  # noqa: B008
        self.pairs = pairs
        self.share = share
        self.row_length = row_length
        self.rows_per_batch = tokens_per_batch // row_length
        self.local_rows = self.rows_per_batch // share.count
        self.seed = seed
        self._packing = functools.lru_cache(maxsize=2)(self._pack_epoch)  # two: reading ahead crosses epochs
        first = self._packing(0)
        self.steps_per_epoch = -(-first.num_rows // self.rows_per_batch)
        positions = first.num_rows * row_length
        self.source_padding = 1 - pairs.source_tokens / positions  # share of positions that hold no token
        self.target_padding = 1 - pairs.target_tokens / positions
        self.padding = (self.source_padding + self.target_padding) / 2

    def batch(self, step):
        """This worker's rows of the Batch of update `step`, counted from 0."""
        epoch, step_in_epoch = divmod(step, self.steps_per_epoch)
        packing = self._packing(epoch)
        first = step_in_epoch * self.rows_per_batch + self.share.index * self.local_rows
        rows = np.arange(first, first + self.local_rows)
        return lay_out(self.pairs, _take_rows(packing, rows % packing.num_rows), self.row_length, self.row_length)

    def _pack_epoch(self, epoch):
        rng = np.random.default_rng((self.seed, epoch))
        return pack(self.pairs.source.lengths, self.pairs.target.lengths, self.row_length, rng)


def training_dataset(batches, first_step, last_step):
    """tf.data.Dataset of the batches of steps first_step .. last_step - 1, made in the background ahead of use."""
    import tensorflow

    shape = (batches.local_rows, batches.row_length)
    return tensorflow.data.Dataset.from_generator(
        lambda: map(batches.batch, range(first_step, last_step)),
        output_signature={field: tensorflow.TensorSpec(shape, tensorflow.int32) for field in FIELDS},
    ).prefetch(16)


def padded_batches(pairs, rows_per_batch, length_step=32):
    """Yield (indices, Batch): every pair once, one to a row, in order of length, for evaluation.

    indices: int (n,), which pairs the first n rows hold. Every Batch has `rows_per_batch` rows, and a length that is
    a multiple of `length_step`: few shapes, hence few compilations. Rows after the first n have segment 0 throughout.
    """
    longest = np.maximum(pairs.source.lengths, pairs.target.lengths)
    padded_lengths = -(-longest // length_step) * length_step
    for length in np.unique(padded_lengths):
        of_length = np.flatnonzero(padded_lengths == length)
        of_length = of_length[np.argsort(longest[of_length], kind="stable")]
        for first in range(0, len(of_length), rows_per_batch):
            indices = of_length[first : first + rows_per_batch]
            one_to_a_row = Packing(indices, np.minimum(np.arange(rows_per_batch + 1), len(indices)))
            yield indices, lay_out(pairs, one_to_a_row, int(length), int(length))


def lay_out(pairs, packing, source_length, target_length):
    """The Batch of the rows of `packing`, filled up to the given lengths."""
    source_ids, source_segments, _ = _lay_out_side(pairs.source, packing, source_length)
    labels, target_segments, is_first = _lay_out_side(pairs.target, packing, target_length)
    shifted = np.roll(labels, 1, axis=1)
    target_ids = np.where(is_first, BOS, np.where(target_segments > 0, shifted, PAD)).astype(np.int32)
    return dict(zip(FIELDS, (source_ids, source_segments, target_ids, target_segments, labels), strict=True))


def _lay_out_side(sentences, packing, length):
    """ids and segments, int32 (rows, length), and is_first, bool (rows, length): where a sentence begins."""
    ids = np.full((packing.num_rows, length), PAD, np.int32)
    segments = np.zeros_like(ids)
    is_first = np.zeros(ids.shape, bool)
    for row in range(packing.num_rows):
        start = 0
        row_pairs = packing.pairs[packing.row_offsets[row] : packing.row_offsets[row + 1]]
        for segment, pair in enumerate(row_pairs, start=1):
            sentence = sentences[pair]
            end = start + len(sentence)
            ids[row, start:end] = sentence
            segments[row, start:end] = segment
            is_first[row, start] = True
            start = end
    return ids, segments, is_first


def _take_rows(packing, rows):
    chosen = [packing.pairs[packing.row_offsets[row] : packing.row_offsets[row + 1]] for row in rows]
    return Packing(np.concatenate(chosen), np.concatenate([[0], np.cumsum([len(pairs) for pairs in chosen])]))
