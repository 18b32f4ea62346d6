"""How much memory is free for training."""

from keras_transformer.ground import machine


def free_memory() -> int | None:
    """Return the bytes of memory that are free for training on a CPU; None on a GPU, or if the system does not say.

    In a container with a limit, that is what is left of the limit, if the machine has more.
    """
    return None if has_gpu() else machine.free_memory()


def has_gpu() -> bool:
    import tensorflow as tf  # here, so that estimates need no TensorFlow

    return bool(tf.config.list_physical_devices("GPU"))  # which starts no device: a strategy may set them up later
