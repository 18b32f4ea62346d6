"""Schedule-free Adam: an average of the weights in place of a learning rate that falls (Defazio et al. 2024)."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

Z, BETA = "schedule_free_z", "schedule_free_beta_1"  # names of its variables in checkpoints


@keras.saving.register_keras_serializable("keras_transformer")
class ScheduleFree(keras.optimizers.Optimizer):
    """Adam without momentum on z, gradients taken at y, and the weights that translate in x: "The Road Less Scheduled".

    For update t, counted from 1, with the rate r(t) and the gradient g of the weights y:

        v = beta_2 v + (1 - beta_2) g^2                     d = g / (sqrt(v / (1 - beta_2^t)) + epsilon) + decay y
        z = z - r(t) d                                      c = r(t)^2 / (r(1)^2 + ... + r(t)^2)
        x = (1 - c) x + c z                                 y = beta_1 x + (1 - beta_1) z

    as in Algorithm 1 of the paper and in its authors' AdamWScheduleFree. The model's weights are y while it is trained.
    x, their average, is what validates and translates: `average_of` gives it from y and z, which checkpoints hold. The
    rate may warm up; it shall not fall.

    Keras 3.15 has ScheduleFreeAdamW, but no way to x: what it leaves in the model is y. It also weighs every update of
    the average by 1 / t, those of the warm-up too; decays y alone, so that z does not decay and x by more than its
    share; and on TensorFlow computes x from y with the new z in place of the old one.
    """

    def __init__(
        self,
        learning_rate=0.0025,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float | None = None,
        name: str = "schedule_free",
        **settings,
    ):
        super().__init__(learning_rate=learning_rate, weight_decay=weight_decay, name=name, **settings)
        if not 0 < beta_1 < 1:
            raise ValueError(f"beta_1 must be above 0 and less than 1. Received: beta_1={beta_1}")
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon

    def build(self, variables: Sequence[keras.Variable]):
        if self.built:
            return
        super().build(variables)
        same = {"aggregation": "only_first_replica"}
        self.squared_rates = self.add_variable((), dtype="float64", name="squared_rates", **same)  # their sum
        beta = keras.initializers.Constant(self.beta_1)
        self.interpolation = self.add_variable((), beta, name=BETA, **same)  # which readers of checkpoints need
        self.sequences, self.velocities = self.add_optimizer_variables(variables, [Z, "velocity"])
        for z, variable in zip(self.sequences, variables, strict=True):
            z.assign(variable)

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        self.squared_rates.assign_add(ops.square(ops.cast(learning_rate, "float64")))
        super()._backend_update_step(grads, trainable_variables, learning_rate)

    def update_step(self, gradient, variable, learning_rate):
        place = self._get_variable_index(variable)
        z, velocity = self.sequences[place], self.velocities[place]
        share = ops.divide_no_nan(ops.square(ops.cast(learning_rate, "float64")), self.squared_rates)
        rate, share = ops.cast(learning_rate, z.dtype), ops.cast(share, z.dtype)
        update = ops.cast(self.iterations + 1, z.dtype)
        self.assign_add(velocity, (ops.square(gradient) - velocity) * (1 - self.beta_2))
        direction = gradient / (ops.sqrt(velocity / (1 - ops.power(self.beta_2, update))) + self.epsilon)
        if self.weight_decay and self._use_weight_decay(variable):
            direction = direction + self.weight_decay * variable
        # the equations above without x, whose rounding errors a division by beta_1 would carry into y
        self.assign_add(variable, share * (z - variable) - rate * (1 - self.beta_1 * (1 - share)) * direction)
        self.assign_sub(z, rate * direction)

    def _apply_weight_decay(self, variables):
        """Do nothing: the decay is a part of the step of z."""

    def get_config(self) -> dict:
        own = {name: getattr(self, name) for name in ("beta_1", "beta_2", "epsilon")}
        return {**super().get_config(), **own}


def average_of(y, z, beta_1: float):
    """x, the average that translates, from the two arrays that are kept."""
    return y + (1 - beta_1) / beta_1 * (y - z)


def averages_in(weights: Mapping[str, Any], slots: Mapping[str, Any]) -> dict[str, Any]:
    """The weights x that translate, of a model trained by ScheduleFree; of any other model its own weights.

    weights: arrays by weight path. slots: those of the optimizer, by path. A frozen weight has none and stays.
    """
    slots = {path.rpartition("/")[2]: array for path, array in slots.items()}
    if BETA not in slots:
        return dict(weights)
    averages = {}
    for path, y in weights.items():
        z = slots.get(slot_name(path, Z), y)
        averages[path] = average_of(y.astype("float64"), z, float(slots[BETA])).astype(y.dtype)
    return averages


def slot_name(weight_path: str, slot: str) -> str:
    """The name, without the optimizer's, that Keras gives the variable which an optimizer keeps for a weight."""
    return f"{weight_path.replace('/', '_')}_{slot}"


@contextlib.contextmanager
def evaluation_weights(model: keras.Model) -> Iterator[None]:
    """Give the model the weights that translate within, if they are others than those that are trained."""
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    if not isinstance(optimizer, ScheduleFree):
        yield
        return
    trained = [np.array(weight.value) for weight in model.trainable_variables]
    for y, z in zip(model.trainable_variables, optimizer.sequences, strict=True):
        y.assign(average_of(np.array(y.value, "float64"), np.array(z.value), optimizer.beta_1))
    try:
        yield
    finally:
        for weight, value in zip(model.trainable_variables, trained, strict=True):
            weight.assign(value)
