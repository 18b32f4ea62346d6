"""Where training runs: on one device, on every accelerator of this machine, or on those of several machines."""

import logging
import os
import pathlib

import tensorflow as tf

from .rendezvous import join
from .tf_config import ALONE, Cluster

NVIDIA_DRIVER = pathlib.Path("/proc/driver/nvidia/version")  # Linux has this file while the driver is loaded

log = logging.getLogger("train")


def choose_strategy(cluster: Cluster = ALONE) -> tf.distribute.Strategy:
    """The strategy for this process: over all workers if the cluster has several, else over this machine's devices.

    On one machine that is MirroredStrategy over all GPUs (or all logical CPUs, if several are configured), or the
    default strategy for a single device.
    """
    warn_of_unused_gpu()
    if cluster.worker.count > 1:
        return join(cluster)
    gpus = tf.config.list_logical_devices("GPU")
    devices = gpus or tf.config.list_logical_devices("CPU")
    if len(devices) > 1:
        return tf.distribute.MirroredStrategy([device.name for device in devices])
    return tf.distribute.get_strategy()


def warn_of_unused_gpu(driver: pathlib.Path = NVIDIA_DRIVER) -> None:
    """Log a warning if this machine has an NVIDIA GPU that TensorFlow does not see, unless the user has hidden it."""
    is_hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    if driver.exists() and not is_hidden and not tf.config.list_physical_devices("GPU"):
        log.warning(
            "this machine has an NVIDIA GPU, but TensorFlow does not see it and trains on the CPU: install its CUDA "
            'libraries with `pip install "tensorflow[and-cuda]==%s"`, or set CUDA_VISIBLE_DEVICES=-1 to train without '
            "it.",
            tf.__version__,
        )


def local_replicas(strategy: tf.distribute.Strategy) -> int:
    """How many replicas of a strategy with several replicas belong to this process."""
    return len(strategy.extended.worker_devices)


def describe(strategy: tf.distribute.Strategy) -> str:
    """The devices as words, for the log and the report."""
    count = strategy.num_replicas_in_sync
    kind = "GPU" if tf.config.list_logical_devices("GPU") else "CPU"
    if count == 1:
        return f"one {kind}"
    workers = count // local_replicas(strategy)
    if workers == 1:
        return f"{count} {kind} replicas (MirroredStrategy)"
    return f"{count} {kind} replicas of {workers} workers (MultiWorkerMirroredStrategy)"


def distributed(dataset: tf.data.Dataset, strategy: tf.distribute.Strategy):
    """A Dataset of this worker's rows, divided among its replicas in their order.

    The parts are declared endless, because training never reads past the end. Otherwise TensorFlow would ask all
    workers before every step whether they have data left, which costs a message.
    """
    if strategy.num_replicas_in_sync == 1:
        return dataset
    rows = next(iter(dataset.element_spec.values())).shape[0]
    parts = dataset.rebatch(rows // local_replicas(strategy))
    parts = parts.apply(tf.data.experimental.assert_cardinality(tf.data.experimental.INFINITE_CARDINALITY))
    return strategy.distribute_datasets_from_function(lambda context: parts)
