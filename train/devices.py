"""Where training runs: one device, or every accelerator of this machine."""

import tensorflow as tf


def choose_strategy():
    """MirroredStrategy over all GPUs (or all logical CPUs, where several are configured); else the one device."""
    gpus = tf.config.list_logical_devices("GPU")
    devices = gpus or tf.config.list_logical_devices("CPU")
    if len(devices) > 1:
        return tf.distribute.MirroredStrategy([device.name for device in devices])
    return tf.distribute.get_strategy()


def describe(strategy):
    count = strategy.num_replicas_in_sync
    kind = "GPU" if tf.config.list_logical_devices("GPU") else "CPU"
    return f"{count} {kind} replicas (MirroredStrategy)" if count > 1 else f"one {kind}"
