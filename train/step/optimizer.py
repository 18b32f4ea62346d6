"""Adam as the paper sets it, for gradients that are already the global ones."""

import keras

from keras_transformer.optimizers import paper_optimizer
from train.config import TrainingConfig


@keras.saving.register_keras_serializable("keras_transformer")
class GlobalAdam(keras.optimizers.Adam):
    """Adam that does not reduce: the training step sums gradients over replicas itself.

    It has to, because it divides by the global token count and logs the global norm; summing again would multiply
    the gradient by the number of replicas (Keras sums in `apply`).
    """

    def _all_reduce_sum_gradients(self, grads_and_vars):
        return grads_and_vars


def training_optimizer(d_model: int, training: TrainingConfig) -> keras.optimizers.Optimizer:
    """The library's `paper_optimizer` (section 5.3) for a training step that reduces gradients itself.

    In float16 it also scales the loss, halves the scale if a gradient overflows, and skips that update.
    """
    adam = paper_optimizer(d_model, training.warmup_steps, training.learning_rate_factor, GlobalAdam)
    if training.precision != "mixed_float16":
        return adam
    # Keras' first scale, 2^15, is for a mean; our loss is a sum over tokens, and would overflow until it has come down
    return keras.optimizers.LossScaleOptimizer(adam, 2.0 ** (15 - training.tokens_per_batch.bit_length()))
