"""What is trained: the model with its first weights, and the training step around it."""

import logging

import keras
import tensorflow as tf

from keras_transformer.model_config import BaseModelConfig
from keras_transformer.runs.kinds import build_model

from ..config.training import TrainingConfig
from ..workers.strategy import describe
from .freezing import freeze
from .optimizer import training_optimizer
from .training_model import TrainingModel

log = logging.getLogger("train")


def build(config: BaseModelConfig, training: TrainingConfig, strategy: tf.distribute.Strategy) -> keras.Model:
    """The model with its first weights, which follow from `training.seed`."""
    with strategy.scope():
        keras.utils.set_random_seed(training.seed)
        transformer = build_model(config, dtype=training.precision)
    parameters = f"{transformer.count_params():,}"
    log.info("%s parameters; training on %s, %s", parameters, describe(strategy), training.precision)
    return transformer


def compiled(transformer: keras.Model, training: TrainingConfig, strategy: tf.distribute.Strategy) -> TrainingModel:
    """A TrainingModel that shares the transformer's weights, ready for `fit`."""
    config = transformer.model_config
    freeze(transformer, training.frozen or ())
    with strategy.scope():
        model = TrainingModel(transformer.input, transformer.output)
        model.compile(
            training_optimizer(config.d_model, training),
            seed=training.seed,
            label_smoothing=config.label_smoothing,
            xla=training.xla,
            micro_batches=training.micro_batches,
        )
    return model
