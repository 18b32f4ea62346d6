"""The paper's learning rate (Vaswani et al. 2017, section 5.3, eq. 3)."""

import keras
from keras import ops


@keras.saving.register_keras_serializable("keras_transformer")
class WarmupInverseSquareRoot(keras.optimizers.schedules.LearningRateSchedule):
    """rate = factor * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5)

    Rises linearly for `warmup_steps` updates, then falls with the inverse square root. For d_model 512 and 4,000
    warm-up steps the peak is 6.99e-4, at step 4,000. `factor` scales the whole curve; the paper's is 1.

    Raises ValueError unless all three are above 0.
    """

    def __init__(self, d_model, warmup_steps=4000, factor=1.0):
        super().__init__()
        for name, value in (("d_model", d_model), ("warmup_steps", warmup_steps), ("factor", factor)):
            if value <= 0:
                raise ValueError(f"{name} must be above 0. Received: {name}={value}")
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
        if learning_rate <= 0:
            raise ValueError(f"learning_rate must be above 0. Received: learning_rate={learning_rate}")
        self.learning_rate = learning_rate

    def __call__(self, updates_done):
        return ops.convert_to_tensor(self.learning_rate, dtype="float32")

    def get_config(self) -> dict:
        return {"learning_rate": self.learning_rate}
