"""Batches of ids and segments: packed rows for training, padded rows for evaluation.

A Batch is a dict of int32 arrays of shape (rows, length):

    source_ids        pieces and EOS of each sentence            7 9 EOS 8 EOS PAD
    source_segments   1..n for the n pairs of a row, 0: padding   1 1  1  2  2   0
    target_ids        what the decoder is given: BOS, pieces      BOS 5 6 BOS 4 PAD
    target_segments                                                1  1 1  2  2  0
    labels            what it shall predict: pieces, EOS          5 6 EOS 4 EOS PAD
"""

import math

import numpy as np

from keras_transformer.config import ConfigError
from keras_transformer.tokens import BOS, PAD
from train.data.encoding import EncodedPairs, EncodedShards, encode_corpus
from train.data.epochs import Epochs
from train.data.packing import Packing, offsets_of
from train.workers.tf_config import Worker

__all__ = [
    "EncodedPairs", "PackedBatches", "ShardedBatches", "batch_number", "encode_corpus", "padded_batches",
    "training_dataset",
]  # fmt: skip

FIELDS = ("source_ids", "source_segments", "target_ids", "target_segments", "labels")


class PackedBatches:
    """Endless training batches of one static shape; `batch(step)` depends on the arguments and the step alone.

    pairs: EncodedPairs, none longer than a row. tokens_per_batch: target positions of a batch, rounded down to whole
    rows of `row_length`. source_row_length: source positions of a row; None for `row_length`. seed: int, or several.
    worker: which of several workers this is; each lays out its own rows of the batch, whose number is a multiple of
    the workers'. Joined in their order, the workers' rows are the batch of one worker.

    An epoch is `steps_per_epoch` batches, as many as epoch 0 takes. Each epoch is shuffled and packed anew, every pair
    in it once; the rows that its last batch lacks are the first ones of the epoch again. (Of an epoch that takes more
    rows than its batches have, the last ones are left out: a row or two of thousands, others in each epoch.)
    """

    def __init__(self, pairs, tokens_per_batch, row_length, seed, source_row_length=None, worker=Worker()):  # noqa: B008
        self.pairs = pairs
        self.row_length, self.source_row_length = row_length, source_row_length or row_length
        self.rows_per_batch = tokens_per_batch // row_length  # of all workers
        self.local_rows = self.rows_per_batch // worker.count  # of this one
        self.worker = worker
        self._epochs = Epochs(pairs, self.source_row_length, row_length, seed)
        self.rows_per_epoch = self._epochs.packing(0).num_rows
        self.steps_per_epoch = -(-self.rows_per_epoch // self.rows_per_batch)
        self.source_padding, self.target_padding, self.padding = _padding(self, pairs)

    def batch(self, step):
        """The Batch of update `step`, counted from 0: this worker's rows of it."""
        epoch, step_in_epoch = divmod(step, self.steps_per_epoch)
        packing = self._epochs.packing(epoch)
        self._epochs.begin(epoch + 1)
        first = step_in_epoch * self.rows_per_batch + self.worker.index * self.local_rows
        rows = np.arange(first, first + self.local_rows) % packing.num_rows
        return lay_out(self.pairs, packing.take(rows), self.source_row_length, self.row_length)


class ShardedBatches:
    """Batches of which every shard of a corpus gives as many rows as any other, in the order of the shards.

    batches: the PackedBatches of this worker's shards, all of one shape, each an endless stream with epochs of its own.
    worker: which of several workers this is; each has as many shards as any other. What is said of an epoch (its steps,
    its padding) is about this worker's shards, and steps do not depend on it.
    """

    def __init__(self, batches, worker=Worker()):  # noqa: B008
        self.batches = tuple(batches)
        first = self.batches[0]
        self.row_length, self.source_row_length = first.row_length, first.source_row_length
        self.local_rows = sum(shard.local_rows for shard in self.batches)
        self.rows_per_batch = self.local_rows * worker.count
        self.rows_per_epoch = sum(shard.rows_per_epoch for shard in self.batches)
        self.steps_per_epoch = max(shard.steps_per_epoch for shard in self.batches)
        self.source_padding, self.target_padding, self.padding = _padding(
            self, EncodedShards(shard.pairs for shard in self.batches)
        )

    def batch(self, step):
        """The Batch of update `step`, counted from 0: this worker's rows of it."""
        parts = [shard.batch(step) for shard in self.batches]
        return {field: np.concatenate([part[field] for part in parts]) for field in FIELDS}


def _padding(batches, pairs):
    """The shares of source positions, of target positions and of both together that hold no token, in epoch 0."""
    source_positions = batches.rows_per_epoch * batches.source_row_length
    target_positions = batches.rows_per_epoch * batches.row_length
    return (
        1 - pairs.source_tokens / source_positions,
        1 - pairs.target_tokens / target_positions,
        1 - (pairs.source_tokens + pairs.target_tokens) / (source_positions + target_positions),
    )


def batch_number(step, skipped):
    """The number of the batch of update `step`, both counted from 0, in a stream without the batches `skipped`.

    Without batches 1 and 2, the updates 0, 1, 2 train on the batches 0, 3, 4.
    """
    number = step
    for batch in sorted(skipped):
        number += batch <= number
    return number


def training_dataset(batches, first_step, last_step, skipped=()):
    """tf.data.Dataset of the batches of steps first_step .. last_step - 1, made in the background ahead of use.

    `skipped`: numbers of the batches that are left out of the stream.
    """
    import tensorflow

    def spec(field):
        length = batches.source_row_length if field.startswith("source") else batches.row_length
        return tensorflow.TensorSpec((batches.local_rows, length), tensorflow.int32)

    return tensorflow.data.Dataset.from_generator(
        lambda: (batches.batch(batch_number(step, skipped)) for step in range(first_step, last_step)),
        output_signature={field: spec(field) for field in FIELDS},
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
    ids = np.full(packing.num_rows * length, PAD, np.int32)
    segments, is_first = np.zeros_like(ids), np.zeros(ids.shape, bool)
    rows = np.repeat(np.arange(packing.num_rows), np.diff(packing.row_offsets))  # of each pair
    starts = sentences.offsets[packing.pairs]
    sizes = sentences.offsets[packing.pairs + 1] - starts
    ends = offsets_of(sizes)  # ends[i]: tokens before pair i
    places = rows * length + ends[:-1] - ends[packing.row_offsets[rows]]  # of each pair's first token
    tokens = np.arange(ends[-1])
    filled = tokens + np.repeat(places - ends[:-1], sizes)
    ids[filled] = sentences.ids[tokens + np.repeat(starts - ends[:-1], sizes)]
    segments[filled] = np.repeat(np.arange(1, len(rows) + 1) - packing.row_offsets[rows], sizes)
    is_first[places] = True
    return tuple(values.reshape(packing.num_rows, length) for values in (ids, segments, is_first))


def check_division(training, shards, replicas, worker):
    """Raises ConfigError unless every device and every shard has equally many rows, and every worker as many shards."""
    if shards > 1 and shards % worker.count:
        raise ConfigError(
            f"data.shards is {shards}, which do not divide among {worker.count} workers; make it a multiple of "
            f"{worker.count}, or 1 for every worker to hold the whole corpus."
        )
    rows = training.tokens_per_batch // training.row_length
    parts = math.lcm(replicas * training.micro_batches, shards, worker.count)
    if rows % parts:
        among = f"{replicas} devices times {training.micro_batches} micro-batches"
        among += f" and among {shards} shards" if shards > 1 else ""
        raise ConfigError(
            f"training.tokens_per_batch {training.tokens_per_batch} makes {rows} rows of {training.row_length}, which "
            f"do not divide into {among}; make it a multiple of {training.row_length * parts}."
        )
