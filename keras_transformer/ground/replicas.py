"""The replicas of a tf.distribute strategy: their sum, number and count; JAX and PyTorch have one replica here."""

import keras


def sum_over_replicas(value):
    """The sum of a scalar over all replicas, in each of them; `value` itself outside a strategy and in other backends.

    Keras calls a loss inside the replica, except while it builds the model: there the sum is not needed.
    """
    if keras.backend.backend() != "tensorflow":
        return value
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return value
    return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(value))


def replica_count() -> int:
    """How many replicas share a batch: the number by which Keras divides the losses that it reduces."""
    if keras.backend.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    return tf.distribute.get_strategy().num_replicas_in_sync


def number_of_replica():
    """Which replica this is, from 0 on and over all machines; 0 outside a strategy and in other backends."""
    if keras.backend.backend() != "tensorflow":
        return 0
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    return 0 if context is None else context.replica_id_in_sync_group
