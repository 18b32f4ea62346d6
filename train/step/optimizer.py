"""Adam as the paper sets it, for gradients that are already the global ones, and a moving average of the weights."""

from collections.abc import Sequence

import keras
from keras import ops

from keras_transformer.optimizers import PAPER_ADAM
from keras_transformer.schedules import ConstantRate, LinearCooldown, WarmupInverseSquareRoot

from ..config.training import TrainingConfig

KINGMA_BA_ADAM = {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-8}
NAME = "adam"  # of the optimizer, and with it of its variables in checkpoints
SCALER_NAME = "loss_scale_optimizer"  # Keras would number the second one of a process
AVERAGE = "average"


@keras.saving.register_keras_serializable("keras_transformer")
class GlobalAdam(keras.optimizers.Adam):
    """Adam that does not reduce: the training step sums gradients over replicas itself.

    It has to, because it divides by the global token count and logs the global norm; summing again would multiply
    the gradient by the number of replicas (Keras sums in `apply`).

    With `ema_decay` it also keeps an exponential moving average of every weight it updates (Polyak & Juditsky 1992):

        average += (1 - decay) * (weight - average)        decay = min(ema_decay, (1 + t) / (10 + t))

    after update t, counted from 0. The second term, as in Marian and in TensorFlow's ExponentialMovingAverage, lets the
    first weights fade at once. Keras' own `use_ema` replaces the weights by their averages at the end of `fit`, and
    assigns outside of `update_step`, which fails if there are several replicas.
    """

    def __init__(self, *arguments, ema_decay: float | None = None, **settings):
        super().__init__(*arguments, **settings)
        self.ema_decay = ema_decay

    def build(self, variables: Sequence[keras.Variable]):
        if self.built:
            return
        super().build(variables)
        if self.ema_decay is not None:
            self.averages = self.add_optimizer_variables(variables, AVERAGE)
            for average, variable in zip(self.averages, variables, strict=True):
                average.assign(variable)

    def update_step(self, gradient, variable, learning_rate):
        super().update_step(gradient, variable, learning_rate)
        if self.ema_decay is not None:
            average = self.averages[self._get_variable_index(variable)]
            updates = ops.cast(self.iterations, average.dtype)
            decay = ops.minimum(self.ema_decay, (1 + updates) / (10 + updates))
            self.assign_add(average, (1 - decay) * ops.subtract(variable, average))

    def _all_reduce_sum_gradients(self, grads_and_vars):
        return grads_and_vars

    def get_config(self) -> dict:
        return {**super().get_config(), "ema_decay": self.ema_decay}


def average_path(weight_path: str) -> str:
    """Return the path of the optimizer variable that is the moving average of a weight."""
    return f"{NAME}/{weight_path.replace('/', '_')}_{AVERAGE}"


def training_schedule(d_model: int, training: TrainingConfig) -> keras.optimizers.schedules.LearningRateSchedule:
    """The learning rate of `training.schedule`, with the cool-down of its last `training.cooldown_steps` updates."""
    if training.schedule == "constant":
        schedule = ConstantRate(training.learning_rate)
    else:
        schedule = WarmupInverseSquareRoot(d_model, training.warmup_steps, training.learning_rate_factor)
    if not training.cooldown_steps:
        return schedule
    return LinearCooldown(schedule, training.steps, training.cooldown_steps)


def training_optimizer(d_model: int, training: TrainingConfig) -> keras.optimizers.Optimizer:
    """Adam with `training_schedule`, for a training step that reduces gradients itself.

    Its constants are the paper's (section 5.3), or with `schedule = "constant"` those of Kingma & Ba (2015).
    `clip_norm` scales all gradients down together if their norm is larger (Pascanu et al. 2013). The norm is that of
    the gradient of the mean loss per token; the log shows it before clipping. Every replica has the same gradients, so
    all clip alike.

    In float16 it also scales the loss, halves the scale if a gradient overflows, and skips that update.
    """
    constants = PAPER_ADAM if training.schedule == "paper" else KINGMA_BA_ADAM
    adam = GlobalAdam(training_schedule(d_model, training), **constants, name=NAME)
    adam.global_clipnorm = training.clip_norm
    adam.ema_decay = training.ema_decay
    if training.precision != "mixed_float16":
        return adam
    # Keras' first scale, 2^15, is for a mean; our loss is a sum over tokens, and would overflow until it has come down
    scale = 2.0 ** (15 - training.tokens_per_batch.bit_length())
    return keras.optimizers.LossScaleOptimizer(adam, scale, name=SCALER_NAME)
