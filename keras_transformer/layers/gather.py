"""Rows of an array by their numbers, which a search reads more often than anything else."""

import keras
from keras import ops


def rows_at(items, numbers, axis: int = 0):
    """Return the rows of `items` (N, ...) with these numbers, int (any shape) from 0 to N - 1: (any shape, ...).

    Or what has these numbers on another axis: (B, N, ...) -> (B, any shape, ...) on axis 1. On TensorFlow `ops.take`
    allows negative numbers, which takes six operations more each time.
    """
    if keras.backend.backend() != "tensorflow":
        return ops.take(items, numbers, axis=axis)
    import tensorflow as tf

    return tf.gather(items, numbers, axis=axis)


def at_columns(values, columns):
    """Return what each row has at these columns: values (N, V, ...), columns int32 (N, k) -> (N, k, ...).

    It takes no more memory than it returns, which an array of (N, k, V) comparisons would. On TensorFlow it is one
    operation.
    """
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.gather(values, columns, axis=1, batch_dims=1)
    rows, width, *rest = ops.shape(values)
    first = ops.expand_dims(ops.arange(rows) * width, 1)
    return rows_at(ops.reshape(values, (rows * width, *rest)), columns + first)
