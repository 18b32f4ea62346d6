"""The dropout rate as a function of the step: a lower one in the cool-down."""

from collections.abc import Callable

import tensorflow as tf

from train.config import TrainingConfig


def dropout_rate_of(dropout: float, training: TrainingConfig) -> Callable | None:
    """The rate of an update, a function of the number of updates before it; None if it is `dropout` throughout.

    It is `training.cooldown_dropout` in the last `training.cooldown_steps` of `training.steps` updates. A network that
    is trained without some of its units expects too little of the others; the fewer are left out, the nearer training
    comes to inference. Rennie et al. (2014) let the rate fall linearly from the first update on.
    """
    if training.cooldown_dropout in (None, dropout) or not training.cooldown_steps:
        return None
    begin = training.steps - training.cooldown_steps
    return lambda updates_done: tf.where(updates_done >= begin, training.cooldown_dropout, dropout)
