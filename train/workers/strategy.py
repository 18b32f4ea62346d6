"""Where training runs: one device, every accelerator of this machine, or those of several machines."""

import tensorflow as tf

from train.workers.rendezvous import join
from train.workers.tf_config import ALONE


def choose_strategy(cluster=ALONE):
    """The strategy for this process: several workers, if the cluster has them; else what this machine has.

    That is MirroredStrategy over all GPUs (or all logical CPUs, where several are configured), or the one device.
    """
    if cluster.worker.count > 1:
        return join(cluster)
    gpus = tf.config.list_logical_devices("GPU")
    devices = gpus or tf.config.list_logical_devices("CPU")
    if len(devices) > 1:
        return tf.distribute.MirroredStrategy([device.name for device in devices])
    return tf.distribute.get_strategy()


def local_replicas(strategy):
    """How many replicas of a strategy, of more than one, are this process's own."""
    return len(strategy.extended.worker_devices)


def describe(strategy):
    count = strategy.num_replicas_in_sync
    kind = "GPU" if tf.config.list_logical_devices("GPU") else "CPU"
    if count == 1:
        return f"one {kind}"
    workers = count // local_replicas(strategy)
    if workers == 1:
        return f"{count} {kind} replicas (MirroredStrategy)"
    return f"{count} {kind} replicas of {workers} workers (MultiWorkerMirroredStrategy)"


def distributed(dataset, strategy):
    """A Dataset of this worker's rows as one of which each replica gets its part, in the order of the replicas.

    It is said to be endless, since nobody reads past its end: otherwise TensorFlow would ask all workers before every
    step whether they have data left, which costs a message.
    """
    if strategy.num_replicas_in_sync == 1:
        return dataset
    rows = next(iter(dataset.element_spec.values())).shape[0]
    parts = dataset.rebatch(rows // local_replicas(strategy), drop_remainder=True)
    parts = parts.apply(tf.data.experimental.assert_cardinality(tf.data.experimental.INFINITE_CARDINALITY))
    return strategy.distribute_datasets_from_function(lambda context: parts)
