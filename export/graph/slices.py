"""A batch of any size, in slices of bounded cost, inside a graph."""

from collections.abc import Callable

import tensorflow as tf

from keras_transformer.tokens import PAD

SLICE_ROWS = 64  # sentences that are searched together, at most
SLICE_TOKENS = 2_048  # positions that they take together, at most, unless one sentence alone is longer


def in_slices(lengths, run: Callable, results: dict) -> dict:
    """Call `run` for slices of the items that have a length, sorted by it, and put what it returns into `results`.

    So memory is that of one slice, whatever the batch, and few short sentences wait for a long one.

    Args:
        lengths: int32 (N,); an item of length 0 keeps what `results` says.
        run: function of int32 indices (R,), R at least 1 -> a dict of tensors whose first axis is R.
        results: the same keys, with first axis N.
    """
    names = sorted(results)
    with_length = tf.cast(tf.where(lengths > 0)[:, 0], tf.int32)
    order = tf.gather(with_length, tf.argsort(tf.gather(lengths, with_length), stable=True))
    ordered = tf.gather(lengths, order)

    def is_left(first, *_):
        return first < tf.size(order)

    def one_slice(first, *found):
        rows = slice_rows(ordered[first : first + SLICE_ROWS])
        indices = order[first : first + rows]
        new = run(indices)
        places = indices[:, tf.newaxis]
        found = [tf.tensor_scatter_nd_update(old, places, new[name]) for name, old in zip(names, found, strict=True)]
        return first + rows, *found

    _, *found = tf.while_loop(
        is_left, one_slice, (tf.constant(0), *(results[name] for name in names)), parallel_iterations=1
    )
    return dict(zip(names, found, strict=True))


def slice_rows(lengths):
    """Return how many of the next items, in rising order of length, one slice takes: int32 (at least 1,) -> ()."""
    counts = tf.range(1, tf.size(lengths) + 1)
    return tf.maximum(tf.reduce_sum(tf.cast(counts * lengths <= SLICE_TOKENS, tf.int32)), 1)


def lengths_of(ragged):
    """Return the number of items of each row, int32 (B,)."""
    return tf.cast(ragged.row_lengths(), tf.int32)


def padded(ids):
    """Fill up with PAD: an int32 RaggedTensor (B, None) -> int32 (B, S), S at least 1."""
    longest = tf.maximum(tf.reduce_max(ids.row_lengths()), 1)
    return ids.to_tensor(PAD, shape=tf.stack([-1, longest]))
