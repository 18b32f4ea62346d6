"""The paper's optimizer (Vaswani et al. 2017, section 5.3)."""

import keras

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.replicas import replica_count
from keras_transformer.schedules import RatePerUpdate, WarmupInverseSquareRoot

PAPER_ADAM = {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9}


def paper_optimizer(
    d_model: int,
    warmup_steps: int = 4000,
    factor: float = 1.0,
    adam: type[keras.optimizers.Adam] = keras.optimizers.Adam,
    **options,
) -> keras.optimizers.Adam:
    """Adam with beta_1 0.9, beta_2 0.98, epsilon 1e-9, and the learning rate of `WarmupInverseSquareRoot`.

    `adam`: a subclass of Adam to make instead, such as AdamW. A corpus that is smaller than the paper's wants a shorter
    warm-up: about a tenth of all updates.

    options: what else `adam` takes, such as global_clipnorm, use_ema or weight_decay. With gradient_accumulation_steps,
    `fit` makes one update from that many batches, and `warmup_steps` counts updates. The update takes the mean of the
    batches' gradients, so a token of a batch with few tokens counts more than others. In `keras-transformer train`,
    `training.micro_batches` adds up sums instead, and every token counts the same. Raises ConfigError for it under a
    tf.distribute strategy of several replicas.
    """
    schedule = WarmupInverseSquareRoot(d_model, warmup_steps, factor)
    if micro_batches := options.get("gradient_accumulation_steps"):
        if (replicas := replica_count()) > 1:
            raise ConfigError(
                f"gradient_accumulation_steps is {micro_batches}, and Keras accumulates no gradients on several "
                f"replicas; here are {replicas}. Leave it out, or set training.micro_batches of `keras-transformer "
                "train`."
            )
        schedule = RatePerUpdate(schedule, micro_batches)
    return adam(schedule, **{**PAPER_ADAM, "name": "adam", **options})
