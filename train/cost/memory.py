"""How much memory is free for training."""

from keras_transformer.ground import machine

from ..workers.hardware import has_gpu


def free_memory() -> int | None:
    """Return the bytes of memory that are free for training on a CPU; None on a GPU, or if the system does not say.

    In a container with a limit, that is what is left of the limit, if the machine has more.
    """
    return None if has_gpu() else machine.free_memory()
