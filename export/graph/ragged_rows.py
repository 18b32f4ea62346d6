"""Values of ragged rows, chosen and found by few operations, inside a graph.

TensorFlow's own functions allow for any rank and for shapes that have to be broadcast: `tf.ragged.boolean_mask` adds
hundreds of operations to a graph, each of which takes time to trace, to write and to open.
"""

import tensorflow as tf


def kept(rows, is_kept):
    """Return the rows with those of their values alone that are kept.

    Shapes: RaggedTensor (B, None, ...), bool (N,) of its N `values` -> RaggedTensor (B, None, ...).
    """
    counts = tf.cumsum(tf.cast(is_kept, rows.row_splits.dtype))
    splits = tf.gather(tf.concat([tf.zeros_like(rows.row_splits[:1]), counts], 0), rows.row_splits)
    values = tf.gather(rows.values, tf.where(is_kept)[:, 0])
    return tf.RaggedTensor.from_row_splits(values, splits, validate=False)


def firsts(rows, limits):
    """Return the first values of each row: RaggedTensor (B, None) with N `values`, int32 (B,) -> the same."""
    places = tf.range(tf.size(rows.values)) - of_values(tf.cast(rows.row_splits[:-1], tf.int32), rows)
    return kept(rows, places < of_values(limits, rows))


def row_numbers(rows):
    """Return the row of each value: RaggedTensor (B, None, ...) with N `values` -> int32 (N,)."""
    ends = tf.cast(rows.row_splits[1:], tf.int32)
    rows_that_end = tf.math.unsorted_segment_sum(tf.ones_like(ends), ends, rows.row_splits[-1] + 1)  # at each place
    return tf.cumsum(rows_that_end)[:-1]


def of_values(of_rows, rows):
    """Return what each row has for each of its values: (B,), RaggedTensor (B, None, ...) with N `values` -> (N,)."""
    return tf.gather(of_rows, row_numbers(rows))
