"""The optimizer of a training: any of Keras, for gradients that are already the global ones, with a moving average."""

import functools
import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_transformer.schedules import (
    ConstantRate,
    LinearCooldown,
    LinearWarmup,
    WarmupCosine,
    WarmupInverseSquareRoot,
)

from ..config.training import TrainingConfig
from .optimizer_choice import class_of, constants_of, name_of

SCALER_NAME = "loss_scale_optimizer"  # Keras would number the second one of a process
AVERAGE = "average"


class GlobalGradients(keras.optimizers.Optimizer):
    """What an optimizer of this training does otherwise than its class of Keras, which follows it: see `over`.

    It does not reduce: the training step sums gradients over replicas itself. It has to, because it divides by the
    global token count and logs the global norm; summing again would multiply the gradient by the number of replicas
    (Keras sums in `apply`).

    Its weight decay leaves vectors alone: biases, and scales and shifts of norms.

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
        self.exclude_from_weight_decay(var_list=[variable for variable in variables if len(variable.shape) < 2])
        super().build(variables)
        self.register_numbers()
        if self.ema_decay is not None:
            self.averages = self.add_optimizer_variables(variables, AVERAGE)
            for average, variable in zip(self.averages, variables, strict=True):
                average.assign(variable)

    def register_numbers(self) -> None:
        """Replace numbers that the class keeps without registering them, as Nadam does: no checkpoint would have them.

        Their names are those of their attributes, and every replica has the value of the first.
        """
        known = {id(variable) for variable in self.variables}
        for name, value in list(vars(self).items()):
            if isinstance(value, keras.Variable) and id(value) not in known and value.shape == ():
                initial = keras.initializers.Constant(float(value))
                options = {"dtype": value.dtype, "aggregation": "only_first_replica", "name": name.strip("_")}
                setattr(self, name, self.add_variable((), initial, **options))

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


@functools.cache
def over(kind: Any) -> type[keras.optimizers.Optimizer]:
    """The class of Keras with GlobalGradients: GlobalAdam of Adam, which Keras can save and load."""
    made = type(f"Global{kind.__name__}", (GlobalGradients, kind), {"__doc__": GlobalGradients.__doc__})
    return keras.saving.register_keras_serializable("keras_transformer")(made)


GlobalAdam = over(keras.optimizers.Adam)


def training_schedule(d_model: int, training: TrainingConfig) -> keras.optimizers.schedules.LearningRateSchedule:
    """The learning rate of `training.schedule`, with the cool-down of its last `training.cooldown_steps` updates."""
    schedule = {
        "paper": lambda: WarmupInverseSquareRoot(d_model, training.warmup_steps, training.learning_rate_factor),
        "constant": lambda: ConstantRate(training.learning_rate),
        "warmup": lambda: LinearWarmup(training.learning_rate, training.warmup_steps),
        "cosine": lambda: WarmupCosine(training.learning_rate, training.warmup_steps, training.steps),
    }[training.schedule]()
    if not training.cooldown_steps:
        return schedule
    return LinearCooldown(schedule, training.steps, training.cooldown_steps)


def training_optimizer(d_model: int, training: TrainingConfig) -> keras.optimizers.Optimizer:
    """The optimizer of `training` with `training_schedule`, for a training step that reduces gradients itself.

    `clip_norm` scales all gradients down together if their norm is larger (Pascanu et al. 2013). The norm is that of
    the gradient of the mean loss per token; the log shows it before clipping. Every replica has the same gradients, so
    all clip alike.

    In float16 it also scales the loss, halves the scale if a gradient overflows, and skips that update.
    """
    settings = {**constants_of(training), **(training.optimizer_options or {})}
    kind = over(class_of(training.optimizer))
    optimizer = kind(training_schedule(d_model, training), **settings, name=name_of(training.optimizer))
    optimizer.global_clipnorm = training.clip_norm
    optimizer.ema_decay = training.ema_decay
    if training.precision != "mixed_float16":
        return optimizer
    # Keras' first scale, 2^15, is for a mean; our loss is a sum over tokens, and would overflow until it has come down
    scale = 2.0 ** (15 - training.tokens_per_batch.bit_length())
    return keras.optimizers.LossScaleOptimizer(optimizer, scale, name=SCALER_NAME)


def slots_per_weight(training: TrainingConfig) -> float:
    """How many arrays of the size of the weights the optimizer of `training` keeps, at most, with a moving average.

    It is counted with one matrix of embeddings. Muon keeps less of the others.
    """
    matrix = keras.Variable(keras.ops.zeros((256, 256)), name="embedding")
    optimizer = training_optimizer(1, training.model_copy(update={"precision": "float32"}))
    optimizer.build([matrix])
    return round(sum(math.prod(variable.shape) for variable in optimizer.variables) / math.prod(matrix.shape), 2)
