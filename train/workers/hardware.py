"""What the processor or a GPU decides of a training: its precision, if nobody says one, and what multiplies in it."""

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.machine import has_bfloat16_products

from ..config.run import RunConfig
from ..config.training import TrainingConfig
from .tf_config import Worker

FLOAT32, BFLOAT16 = "float32", "mixed_bfloat16"


def has_gpu() -> bool:
    import tensorflow as tf  # here, so that estimates need no TensorFlow

    return bool(tf.config.list_physical_devices("GPU"))  # which starts no device: a strategy may set them up later


def precision_here(config: RunConfig, worker: Worker) -> str:
    """mixed_bfloat16 for a Transformer on a processor that multiplies matrices in bfloat16, else float32.

    float32 as well where nothing was measured: on a GPU, for other models, and for adapters, whose small changes of a
    matrix bfloat16 would round away. Several workers may have different processors, and must agree.
    """
    is_measured = config.model.kind == TransformerConfig.kind and not config.training.lora_rank
    if is_measured and worker.count == 1 and has_bfloat16_products() and not has_gpu():
        return BFLOAT16
    return FLOAT32


def xla_multiplies(training: TrainingConfig) -> bool:
    """Whether XLA, where it compiles a step, compiles its matrix products too.

    On a processor it multiplies bfloat16 with the instructions of float32, and oneDNN in TensorFlow with its own.
    """
    return training.precision != BFLOAT16 or has_gpu()
