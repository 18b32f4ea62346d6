"""What the processor or a GPU decides of a training: its precision, if nobody says one, and what multiplies in it."""

import functools
import time

import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.machine import has_bfloat16_products

from ..config.run import RunConfig
from ..config.training import TrainingConfig
from .tf_config import Worker

# Times as fast as in float32: AMX multiplies 3 to 5 times as fast, and a step with 2.6 million parameters takes 0.8 of
# the time; AVX-512 BF16 of the same processor 0.7 times, and a step 1.3
WORTH_ROUNDING = 2.0
FLOAT32, BFLOAT16 = "float32", "mixed_bfloat16"


def has_gpu() -> bool:
    import tensorflow as tf  # here, so that estimates need no TensorFlow

    return bool(tf.config.list_physical_devices("GPU"))  # which starts no device: a strategy may set them up later


def precision_here(config: RunConfig, worker: Worker) -> str:
    """mixed_bfloat16 for a Transformer on a processor that multiplies much faster in it (measured now), else float32.

    float32 as well where no training was measured: on a GPU, for other models, and for adapters, whose small changes of
    a matrix bfloat16 would round away. Several workers may have different processors, and must agree.
    """
    was_tried = config.model.kind == TransformerConfig.kind and not config.training.lora_rank
    if was_tried and worker.count == 1 and has_bfloat16_products() and not has_gpu():
        return BFLOAT16 if bfloat16_gain(config.training.xla) >= WORTH_ROUNDING else FLOAT32
    return FLOAT32


def xla_multiplies(training: TrainingConfig) -> bool:
    """Whether XLA, where it compiles a step, compiles its matrix products too.

    On a processor it multiplies bfloat16 with the instructions of float32, and oneDNN in TensorFlow with its own.
    """
    return training.precision != BFLOAT16 or has_gpu()


def product_flops(training: TrainingConfig) -> float:
    """FLOPs per second of a matrix product as a training step has it on this device."""
    return matrix_flops(training.precision.removeprefix("mixed_"), training.xla and xla_multiplies(training))


def bfloat16_gain(xla: bool) -> float:
    """How much faster this processor multiplies in bfloat16 than in float32, which XLA compiles if `xla`: 1 s."""
    return matrix_flops("bfloat16", False) / matrix_flops("float32", xla)


@functools.cache  # a run asks for its precision, for its log and for its estimate of time
def matrix_flops(dtype: str, xla: bool, size: int = 1024, seconds: float = 0.5) -> float:
    """FLOPs per second of a matrix product on this device, compiled if `xla`: those of the fastest within `seconds`."""
    import tensorflow as tf  # here, so that the other lines need no TensorFlow

    matrix = tf.cast(tf.random.normal((size, size)), dtype)
    product = tf.function(lambda a: tf.reduce_sum(tf.matmul(a, a)), jit_compile=xla)
    product(matrix).numpy()
    best, started = np.inf, time.perf_counter()
    while time.perf_counter() - started < seconds:
        before = time.perf_counter()
        product(matrix).numpy()
        best = min(best, time.perf_counter() - before)
    return 2 * size**3 / best
