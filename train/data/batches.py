"""Batches of ids and segments: packed rows for training, padded rows for evaluation.

A Batch is a dict of int32 arrays of shape (rows, length). Here is one row that holds two sentence pairs:

    source_ids        the pieces and EOS of each sentence         7 9 EOS 8 EOS PAD
    source_segments   1..n for the n pairs of a row, 0: padding   1 1  1  2  2   0
    target_ids        what the decoder reads: BOS, pieces         BOS 5 6 BOS 4 PAD
    target_segments                                                1  1 1  2  2  0
    labels            what the decoder predicts: pieces, EOS      5 6 EOS 4 EOS PAD
"""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from keras_transformer.ground.tokens import BOS, PAD

from ..config.training import RowLengths
from ..workers.tf_config import ONLY_WORKER, Worker
from .encoding import EncodedPairs, Sentences
from .epochs import Epochs, Redraw
from .links import Linker
from .packing import Packing, offsets_of, places_of

FIELDS = ("source_ids", "source_segments", "target_ids", "target_segments", "labels")
LINKS = "links"  # of guided alignment: the place of the source token that a target token translates

Batch = dict[str, np.ndarray]


class Padding(NamedTuple):
    """Fractions of positions that hold no token: of the source side, of the target side, of both together."""

    source: float
    target: float
    total: float


def padding_of(source_tokens: int, target_tokens: int, num_rows: int, row_lengths: RowLengths) -> Padding:
    """The Padding of so many tokens that are packed into `num_rows` rows."""
    source_positions, target_positions = num_rows * row_lengths.source, num_rows * row_lengths.target
    return Padding(
        1 - source_tokens / source_positions,
        1 - target_tokens / target_positions,
        1 - (source_tokens + target_tokens) / (source_positions + target_positions),
    )


class PackedBatches:
    """Endless training batches of one static shape. `batch(step)` depends on the arguments and the step alone.

    pairs: none longer than a row. tokens_per_batch: target positions of a batch, rounded down to whole rows.
    seed: one int or several. worker: each worker builds only its own rows of a batch; the number of rows must be a
    multiple of the number of workers. The rows of all workers, in their order, are the batch of a single worker.
    redraw: changes the pairs of every epoch, or divides their words anew, as `Epochs` describes.

    Every epoch shuffles and packs all pairs again, or those that their mixture takes. It has `steps_per_epoch` batches,
    as many as epoch 0 needs. Rows missing from its last batch are taken from its beginning; rows left over (one or two
    in thousands, different ones each time) are dropped.
    """

    def __init__(
        self,
        pairs: EncodedPairs,
        tokens_per_batch: int,
        row_lengths: RowLengths,
        seed: int | tuple[int, ...],
        worker: Worker = ONLY_WORKER,
        redraw: Redraw | None = None,
        linker: Linker | None = None,
    ):
        self.linker, self.fields = linker, FIELDS if linker is None else (*FIELDS, LINKS)
        self.row_lengths = row_lengths
        self.rows_per_batch = tokens_per_batch // row_lengths.target  # of all workers together
        self.local_rows = self.rows_per_batch // worker.count  # of this worker
        self.worker = worker
        self._epochs = Epochs(pairs, row_lengths, seed, redraw)
        pairs, packing = self._epochs.epoch(0)
        self.rows_per_epoch = packing.num_rows
        self.steps_per_epoch = math.ceil(self.rows_per_epoch / self.rows_per_batch)
        self.source_tokens = int(pairs.source.lengths[packing.pairs].sum())  # of epoch 0
        self.target_tokens = int(pairs.target.lengths[packing.pairs].sum())
        self.padding = padding_of(self.source_tokens, self.target_tokens, self.rows_per_epoch, row_lengths)

    def batch(self, step: int) -> Batch:
        """This worker's rows of the batch of update `step`, counted from 0."""
        number, step_in_epoch = divmod(step, self.steps_per_epoch)
        pairs, packing = self._epochs.epoch(number)
        first = step_in_epoch * self.rows_per_batch + self.worker.index * self.local_rows
        rows = np.arange(first, first + self.local_rows) % packing.num_rows
        batch = lay_out(pairs, packing.take(rows), self.row_lengths)
        return batch if self.linker is None else batch | {LINKS: self.linker(batch)}

    def prepare_next(self, step: int, last: int) -> None:
        """Prepare the epoch after that of batch `step` in the background, unless batch `last` comes before it."""
        number = step // self.steps_per_epoch + 1
        if number * self.steps_per_epoch <= last:
            self._epochs.prepare_ahead(number)

    def give_up(self) -> None:
        """Give up the epoch that is being prepared: it can take minutes, for which a process would wait at its end."""
        self._epochs.give_up()


class ShardedBatches:
    """Batches to which every shard of a corpus contributes equally many rows, in the order of the shards.

    shards: the PackedBatches of this worker's shards, all of one shape. Each is an endless stream with epochs of its
    own. Every worker has equally many shards. `rows_per_epoch`, `steps_per_epoch` and `padding` describe the shards of
    this worker; batches do not depend on them.
    """

    def __init__(self, shards: Iterable[PackedBatches], worker: Worker = ONLY_WORKER):
        self.shards = tuple(shards)
        self.row_lengths, self.fields = self.shards[0].row_lengths, self.shards[0].fields
        self.local_rows = sum(shard.local_rows for shard in self.shards)
        self.rows_per_batch = self.local_rows * worker.count
        self.rows_per_epoch = sum(shard.rows_per_epoch for shard in self.shards)
        self.steps_per_epoch = max(shard.steps_per_epoch for shard in self.shards)
        source_tokens = sum(shard.source_tokens for shard in self.shards)
        target_tokens = sum(shard.target_tokens for shard in self.shards)
        self.padding = padding_of(source_tokens, target_tokens, self.rows_per_epoch, self.row_lengths)

    def epochs(self, steps: int) -> float:
        """How often `steps` updates go through the pairs of these shards, repeated rows included."""
        return steps * sum(shard.rows_per_batch for shard in self.shards) / self.rows_per_epoch

    def batch(self, step: int) -> Batch:
        """This worker's rows of the batch of update `step`, counted from 0."""
        parts = [shard.batch(step) for shard in self.shards]
        return {field: np.concatenate([part[field] for part in parts]) for field in self.fields}

    def prepare_next(self, step: int, last: int) -> None:
        """Prepare the next epoch of each shard in the background, unless batch `last` comes before it."""
        for shard in self.shards:
            shard.prepare_next(step, last)

    def give_up(self) -> None:
        """Give up the epochs that are being prepared."""
        for shard in self.shards:
            shard.give_up()


def batch_number(step: int, skipped: Iterable[int]) -> int:
    """The number of the batch of update `step` if the batches `skipped` are left out; all are counted from 0.

    Without batches 1 and 2, the updates 0, 1, 2 train on the batches 0, 3, 4.
    """
    number = step
    for batch in sorted(skipped):
        if batch <= number:
            number += 1
    return number


def training_dataset(
    batches: PackedBatches | ShardedBatches, first_step: int, last_step: int, skipped: Iterable[int] = ()
):
    """A tf.data.Dataset of the batches of steps first_step .. last_step - 1, prepared in the background.

    skipped: numbers of the batches that are left out of the stream.
    """
    import tensorflow

    def stream() -> Iterator[Batch]:
        last = batch_number(last_step - 1, skipped)
        for number in (batch_number(step, skipped) for step in range(first_step, last_step)):
            batch = batches.batch(number)
            batches.prepare_next(number, last)
            yield batch

    lengths = batches.row_lengths
    return tensorflow.data.Dataset.from_generator(
        stream,
        output_signature={
            field: tensorflow.TensorSpec(
                (batches.local_rows, lengths.source if field.startswith("source") else lengths.target), tensorflow.int32
            )
            for field in batches.fields
        },
    ).prefetch(16)


def padded_batches(
    pairs: EncodedPairs, most_rows: int, length_step: int = 32, most_positions: float = math.inf
) -> Iterator[tuple[np.ndarray, Batch]]:
    """Yield (indices, Batch) for evaluation: every pair once, one per row, sorted by length.

    indices: int (n,), the pairs that the first n rows hold. Every Batch has a length that is a multiple of
    `length_step`, and all of one length have as many rows: few shapes, hence few compilations. There are `most_rows`,
    or as many as have `most_positions` on each side, but at least one. Those after the first n have segment 0
    throughout.
    """
    longest = np.maximum(pairs.source.lengths, pairs.target.lengths)
    padded_lengths = np.ceil(longest / length_step).astype(int) * length_step
    for length in np.unique(padded_lengths).tolist():
        of_length = np.flatnonzero(padded_lengths == length)
        of_length = of_length[np.argsort(longest[of_length], kind="stable")]
        rows_per_batch = int(max(1, min(most_positions, most_rows * length) // length))
        for first in range(0, len(of_length), rows_per_batch):
            indices = of_length[first : first + rows_per_batch]
            one_pair_per_row = Packing(indices, np.minimum(np.arange(rows_per_batch + 1), len(indices)))
            yield indices, lay_out(pairs, one_pair_per_row, RowLengths(length, length))


def lay_out(pairs: EncodedPairs, packing: Packing, row_lengths: RowLengths) -> Batch:
    """The Batch of the rows of `packing`, padded to `row_lengths`."""
    source_ids, source_segments, _ = _lay_out_side(pairs.source, packing, row_lengths.source)
    labels, target_segments, is_first = _lay_out_side(pairs.target, packing, row_lengths.target)
    shifted = np.roll(labels, 1, axis=1)
    target_ids = np.where(is_first, BOS, np.where(target_segments > 0, shifted, PAD)).astype(np.int32)
    return dict(zip(FIELDS, (source_ids, source_segments, target_ids, target_segments, labels), strict=True))


def _lay_out_side(sentences: Sentences, packing: Packing, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ids and segments, int32 (rows, length), and is_first, bool (rows, length): True where a sentence begins.

    All tokens are copied by one assignment from `sentences.ids` to the flat batch. Token t of the batch, counted
    without padding, is read from `read_at[t]` and written to `write_at[t]`. In the two-pair example of this module's
    source side, rows of length 6, if sentence 0 of the corpus is `8 EOS` and sentence 1 is `7 9 EOS`:

        packing           pairs [1, 0], row_offsets [0, 2]: one row, first pair 1, then pair 0
        sentences         ids [8, EOS, 7, 9, EOS], offsets [0, 2, 5]
        starts, sizes     [2, 0], [3, 2]: pair 1 is ids[2:5], pair 0 is ids[0:2]
        before            [0, 3, 5]: tokens of the batch before each of its pairs, and all of them
        places            [0, 3]: where each pair begins in the flat batch; in a second row 6 would be added
        read_at           [2, 3, 4, 0, 1]
        write_at          [0, 1, 2, 3, 4]; position 5 keeps PAD and segment 0
        segments          [1, 1, 1, 2, 2, 0]
    """
    ids = np.full(packing.num_rows * length, PAD, np.int32)
    segments, is_first = np.zeros_like(ids), np.zeros(ids.shape, bool)
    rows = np.repeat(np.arange(packing.num_rows), np.diff(packing.row_offsets))  # the row of each pair
    first_pairs = packing.row_offsets[rows]  # the first pair in the row of each pair
    starts = sentences.offsets[packing.pairs]
    sizes = sentences.offsets[packing.pairs + 1] - starts
    before = offsets_of(sizes)
    places = rows * length + before[:-1] - before[first_pairs]
    read_at, write_at = places_of(starts, sizes), places_of(places, sizes)
    ids[write_at] = sentences.ids[read_at]
    segments[write_at] = np.repeat(np.arange(len(rows)) - first_pairs + 1, sizes)
    is_first[places] = True
    shape = packing.num_rows, length
    return ids.reshape(shape), segments.reshape(shape), is_first.reshape(shape)
