"""Finds by trial, before the first step, with how many micro-batches a step fits in memory."""

import functools
import gc
import logging
from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.machine import gigabytes
from keras_transformer.model_config import BaseModelConfig
from keras_transformer.runs.run_folder import RunFolder

from ..config.run import RunConfig
from ..config.training import TrainingConfig
from ..data.batches import ShardedBatches, training_dataset
from ..record.changes import write_configuration
from ..step.training_model import TrainingModel, compiled
from ..workers.strategy import distributed
from ..workers.workers import Workers
from .cost import training_memory
from .memory import free_memory

log = logging.getLogger("train")


def compiled_to_fit(
    config: RunConfig, folder: RunFolder, batches: ShardedBatches, transformer: keras.Model, workers: Workers
) -> tuple[RunConfig, TrainingModel]:
    """`compiled`, with as many micro-batches as memory asks for if `training.find_micro_batches` is true.

    Returns the configuration with the number that was found, which config.toml then has too, and the model.
    """
    compile_for = functools.partial(compiled, transformer, strategy=workers.strategy)
    if not config.training.find_micro_batches:
        return config, compile_for(config.training)
    model_config = transformer.model_config
    training, model = find_micro_batches(config.training, model_config, batches, workers.strategy, compile_for)
    config = config.model_copy(update={"training": training})
    write_configuration(folder, config, model_config)
    return config, model


def find_micro_batches(
    training: TrainingConfig,
    transformer_config: BaseModelConfig,
    batches: ShardedBatches,
    strategy: tf.distribute.Strategy,
    compiled: Callable[[TrainingConfig], TrainingModel],
) -> tuple[TrainingConfig, TrainingModel]:
    """Try steps with `training.micro_batches` parts, and with more and more, until one fits in memory.

    compiled: returns the model with a training step for a TrainingConfig.

    Returns the TrainingConfig with that number, and its model, whose weights and optimizer are as they were. A GPU
    reports that its memory is exhausted. On a CPU, a process that takes more memory than there is would be killed, so
    nothing is tried whose estimate exceeds the free memory. Raises ConfigError if not even one row at once fits.
    """
    rows, free = batches.rows_per_batch // strategy.num_replicas_in_sync, free_memory()
    for count in range(training.micro_batches, rows + 1):
        if rows % count:
            continue
        estimate = training_memory(training, transformer_config, rows // count, batches.row_lengths)
        if free is not None and estimate > free:
            log.info("%s takes about %s, but %s are free", parts(count, rows), gigabytes(estimate), gigabytes(free))
            continue
        fixed = training.model_copy(update={"micro_batches": count, "find_micro_batches": False})
        model = compiled(fixed)
        if step_fits(model, batches, strategy):
            log.info("%s fits in memory; config.toml records it as training.micro_batches", parts(count, rows))
            return fixed, model
        log.info("%s does not fit in memory", parts(count, rows))
        del model
        gc.collect()  # its optimizer would take memory from the next trial
    raise ConfigError(
        f"Not even one row of {batches.row_lengths.target} positions at once fits in memory: use a smaller [model], a "
        "smaller tokenizer.vocab_size or a smaller training.row_length."
    )


def step_fits(model: TrainingModel, batches: ShardedBatches, strategy: tf.distribute.Strategy) -> bool:
    """Take the first step of training and undo it. Returns whether its memory sufficed."""
    variables = [*model.trainable_variables, *model.optimizer.variables]
    before = [np.array(variable.value) for variable in variables]
    try:
        logs = model.make_train_function()(iter(distributed(training_dataset(batches, 0, 1), strategy)))
        float(logs["loss"])  # waits for the step
    except (tf.errors.ResourceExhaustedError, MemoryError):
        return False
    finally:
        for variable, value in zip(variables, before, strict=True):
            variable.assign(value)
    return True


def parts(count: int, rows: int) -> str:
    return f"a step of {count} micro-batches, {rows // count} rows at once per device,"
