"""Computes a batch of any size in slices of bounded cost, inside a graph."""

from collections.abc import Callable

import tensorflow as tf

from keras_transformer.ground.tokens import EOS, PAD

SLICE_ROWS = 64  # sentences of a slice, at most
SLICE_TOKENS = 2_048  # positions of a slice with its padding, at most, unless one sentence alone is longer


def in_slices(lengths, run: Callable, results: dict) -> dict:
    """Call `run` for slices of items, sorted by length, and return `results` with its values in their places.

    So memory is that of one slice, whatever the size of the batch, and few short sentences wait for a long one.

    Args:
        lengths: int32 (N,); an item of length 0 keeps its value in `results`.
        run: function of int32 indices (R,), R at least 1 -> a dict of tensors whose first axis is R.
        results: the same keys, with first axis N.
    """
    names = sorted(results)
    with_length = tf.cast(tf.where(lengths > 0)[:, 0], tf.int32)
    order = tf.gather(with_length, tf.argsort(tf.gather(lengths, with_length), stable=True))
    ordered = tf.gather(lengths, order)

    def is_left(first, *_):
        return first < tf.size(order)

    def one_slice(first, *arrays):
        rows = slice_rows(ordered[first : first + SLICE_ROWS])
        indices = order[first : first + rows]
        new = run(indices)
        places = indices[:, tf.newaxis]
        arrays = [tf.tensor_scatter_nd_update(old, places, new[name]) for name, old in zip(names, arrays, strict=True)]
        return first + rows, *arrays

    _, *arrays = tf.while_loop(
        is_left, one_slice, (tf.constant(0), *(results[name] for name in names)), parallel_iterations=1
    )
    return dict(zip(names, arrays, strict=True))


def slice_rows(lengths):
    """Return how many of the next items, sorted by length, fit into one slice: int32 (at least 1,) -> int32 ()."""
    counts = tf.range(1, tf.size(lengths) + 1)
    return tf.maximum(tf.reduce_sum(tf.cast(counts * lengths <= SLICE_TOKENS, tf.int32)), 1)


def lengths_of(ragged):
    """Return the number of items in each row of a RaggedTensor: int32 (B,)."""
    return tf.cast(ragged.row_lengths(), tf.int32)


def padded(ids):
    """Pad each row with PAD: an int32 RaggedTensor (B, None) -> int32 (B, S), S at least 1."""
    longest = tf.maximum(tf.reduce_max(ids.row_lengths()), 1)
    return ids.to_tensor(PAD, shape=tf.stack([-1, longest]))


def first_bytes(text, most: int):
    """Cut each line to so many bytes, without a character that the cut divides: string (B,) -> string (B,)."""
    cut = tf.strings.unicode_transcode(tf.strings.substr(text, 0, most), "UTF-8", "UTF-8", errors="ignore")
    return tf.where(tf.strings.length(text) > most, cut, text)


def with_end(pieces):
    """Append EOS to each row of an int32 RaggedTensor (B, None)."""
    return tf.concat([pieces, tf.fill([pieces.nrows(), 1], EOS)], axis=1)
