"""The paper's learning rate (Vaswani et al. 2017, section 5.3, eq. 3), others, and what changes any of them."""

import math
import numbers

import keras
from keras import ops


def check_above_0(name: str, value: float) -> None:
    """Raises ValueError for what is not a number above 0."""
    if not isinstance(value, numbers.Real) or not value > 0:
        raise ValueError(f"{name} must be above 0. Received: {name}={value!r}")


@keras.saving.register_keras_serializable("keras_transformer")
class WarmupInverseSquareRoot(keras.optimizers.schedules.LearningRateSchedule):
    """rate = factor * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5)

    Rises linearly for `warmup_steps` updates, then falls with the inverse square root. For d_model 512 and 4,000
    warm-up steps the peak is 6.99e-4, at step 4,000. `factor` scales the whole curve; the paper's is 1.

    Raises ValueError unless all three are above 0.
    """

    def __init__(self, d_model: int, warmup_steps: int = 4000, factor: float = 1.0):
        super().__init__()
        for name, value in (("d_model", d_model), ("warmup_steps", warmup_steps), ("factor", factor)):
            check_above_0(name, value)
        self.d_model, self.warmup_steps, self.factor = d_model, warmup_steps, factor

    def __call__(self, updates_done):
        step = ops.cast(updates_done, "float32") + 1.0  # Keras counts from 0, the paper from 1
        return self.factor * self.d_model**-0.5 * ops.minimum(step**-0.5, step * self.warmup_steps**-1.5)

    def get_config(self):
        return {"d_model": self.d_model, "warmup_steps": self.warmup_steps, "factor": self.factor}


@keras.saving.register_keras_serializable("keras_transformer")
class ConstantRate(keras.optimizers.schedules.LearningRateSchedule):
    """rate = learning_rate, at every step. A number in place of it would be saved with the optimizer's state.

    Raises ValueError unless it is above 0.
    """

    def __init__(self, learning_rate: float):
        super().__init__()
        check_above_0("learning_rate", learning_rate)
        self.learning_rate = learning_rate

    def __call__(self, updates_done):
        return ops.convert_to_tensor(self.learning_rate, dtype="float32")

    def get_config(self) -> dict:
        return {"learning_rate": self.learning_rate}


@keras.saving.register_keras_serializable("keras_transformer")
class LinearWarmup(keras.optimizers.schedules.LearningRateSchedule):
    """rate = learning_rate * min(1, (updates_done + 1) / warmup_steps)

    Rises linearly for `warmup_steps` updates, then stays. Raises ValueError unless both are above 0.
    """

    def __init__(self, learning_rate: float, warmup_steps: int):
        super().__init__()
        for name, value in (("learning_rate", learning_rate), ("warmup_steps", warmup_steps)):
            check_above_0(name, value)
        self.learning_rate, self.warmup_steps = learning_rate, warmup_steps

    def __call__(self, updates_done):
        return self.learning_rate * ops.minimum((ops.cast(updates_done, "float32") + 1.0) / self.warmup_steps, 1.0)

    def get_config(self) -> dict:
        return {"learning_rate": self.learning_rate, "warmup_steps": self.warmup_steps}


@keras.saving.register_keras_serializable("keras_transformer")
class WarmupCosine(LinearWarmup):
    """The same, and after the warm-up half a cosine (Loshchilov and Hutter 2017):

        rate = learning_rate * (1 + cos(pi * (updates_done - warmup_steps) / (steps - warmup_steps))) / 2

    It is half of `learning_rate` halfway between the warm-up and `steps`, and 0 after `steps` updates. Raises
    ValueError unless learning_rate is above 0, and 0 < warmup_steps < steps.
    """

    def __init__(self, learning_rate: float, warmup_steps: int, steps: int):
        super().__init__(learning_rate, warmup_steps)
        if not warmup_steps < steps:
            raise ValueError(f"warmup_steps must be less than steps. Received: {warmup_steps=}, {steps=}")
        self.steps = steps

    def __call__(self, updates_done):
        beyond = (ops.cast(updates_done, "float32") - self.warmup_steps) / (self.steps - self.warmup_steps)
        return super().__call__(updates_done) * (1.0 + ops.cos(math.pi * ops.clip(beyond, 0.0, 1.0))) / 2.0

    def get_config(self) -> dict:
        return {**super().get_config(), "steps": self.steps}


@keras.saving.register_keras_serializable("keras_transformer")
class LinearCooldown(keras.optimizers.schedules.LearningRateSchedule):
    """rate = schedule(updates_done) * min(1, (steps - updates_done) / cooldown_steps)

    Of `steps` updates, the last `cooldown_steps` take a rate that falls linearly to 0: the factor of the first of them
    is 1, of the last 1 / cooldown_steps. After `steps` updates the rate is 0. In mixed_float16 a step whose gradients
    overflow is not an update, so training ends as many updates before that. Hägele et al. (2024) compare cool-downs.

    Raises ValueError unless 0 < cooldown_steps <= steps.
    """

    def __init__(self, schedule: keras.optimizers.schedules.LearningRateSchedule, steps: int, cooldown_steps: int):
        super().__init__()
        if not 0 < cooldown_steps <= steps:
            raise ValueError(f"cooldown_steps must be above 0 and at most steps. Received: {cooldown_steps=}, {steps=}")
        self.schedule, self.steps, self.cooldown_steps = schedule, steps, cooldown_steps

    def __call__(self, updates_done):
        left = self.steps - ops.cast(updates_done, "float32")
        return self.schedule(updates_done) * ops.clip(left / self.cooldown_steps, 0.0, 1.0)

    def get_config(self) -> dict:
        schedule = keras.saving.serialize_keras_object(self.schedule)
        return {"schedule": schedule, "steps": self.steps, "cooldown_steps": self.cooldown_steps}

    @classmethod
    def from_config(cls, config: dict) -> "LinearCooldown":
        return cls(**{**config, "schedule": keras.saving.deserialize_keras_object(config["schedule"])})


@keras.saving.register_keras_serializable("keras_transformer")
class RatePerUpdate(keras.optimizers.schedules.LearningRateSchedule):
    """rate = schedule(floor(micro_batches_done / micro_batches))

    For a Keras optimizer with `gradient_accumulation_steps`, which asks its schedule with the number of micro-batches
    (Keras 3.15) and updates after `micro_batches` of them: without this, warm-up ends `micro_batches` times too early.

    Raises ValueError unless micro_batches is at least 1.
    """

    def __init__(self, schedule: keras.optimizers.schedules.LearningRateSchedule, micro_batches: int):
        super().__init__()
        if micro_batches < 1:
            raise ValueError(f"micro_batches must be at least 1. Received: {micro_batches=}")
        self.schedule, self.micro_batches = schedule, micro_batches

    def __call__(self, micro_batches_done):
        return self.schedule(ops.floor_divide(micro_batches_done, self.micro_batches))

    def get_config(self) -> dict:
        return {"schedule": keras.saving.serialize_keras_object(self.schedule), "micro_batches": self.micro_batches}

    @classmethod
    def from_config(cls, config: dict) -> "RatePerUpdate":
        return cls(**{**config, "schedule": keras.saving.deserialize_keras_object(config["schedule"])})
