"""The paper's optimizer (Vaswani et al. 2017, section 5.3)."""

import keras

from keras_transformer.schedules import WarmupInverseSquareRoot

PAPER_ADAM = {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9}


def paper_optimizer(
    d_model: int,
    warmup_steps: int = 4000,
    factor: float = 1.0,
    adam: type[keras.optimizers.Adam] = keras.optimizers.Adam,
) -> keras.optimizers.Adam:
    """Adam with beta_1 0.9, beta_2 0.98, epsilon 1e-9, and the learning rate of `WarmupInverseSquareRoot`.

    `adam`: a subclass of Adam to make instead, such as AdamW. A corpus that is smaller than the paper's wants a shorter
    warm-up: about a tenth of all updates.
    """
    schedule = WarmupInverseSquareRoot(d_model, warmup_steps, factor)
    return adam(schedule, **PAPER_ADAM, name="adam")
