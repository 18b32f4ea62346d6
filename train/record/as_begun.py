"""What a configuration leaves to the machine: a run keeps what it was begun with."""

import contextlib
import logging

from keras_transformer.ground.errors import first_line_of
from keras_transformer.runs.run_folder import RunFolder

from ..config.recorded import BEFORE_THEY_WERE_KEYS
from ..config.run import RunConfig
from ..config.training import AUTO
from ..workers.hardware import precision_here
from ..workers.tf_config import ONLY_WORKER, Worker
from .changes import recorded_values

log = logging.getLogger("train")


def with_found_micro_batches(folder: RunFolder, config: RunConfig, worker: Worker = ONLY_WORKER) -> RunConfig:
    """The configuration with the number of micro-batches that the run was begun with, if it was to find one by trial.

    The number decides which dropout masks are drawn, so it stays, on a machine with more memory too. For one of several
    workers the configuration stays as it is: `check_division` refuses it on all of them.
    """
    if not config.training.find_micro_batches or worker.count > 1 or not folder.has_begun():
        return config
    try:
        number = int(recorded_values(folder)["training.micro_batches"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning(
            "%s cannot be read (%s): the number of micro-batches is found anew",
            folder.config,
            first_line_of(error)[:-1],
        )
        return config
    log.info(
        "training.find_micro_batches: the run goes on with training.micro_batches = %d, with which it was begun; to "
        "take more, set that key instead",
        number,
    )
    training = config.training.model_copy(update={"micro_batches": number, "find_micro_batches": False})
    return config.model_copy(update={"training": training})


def with_precision(folder: RunFolder, config: RunConfig, worker: Worker = ONLY_WORKER) -> RunConfig:
    """The configuration with a precision in place of "auto": the machine's, or that with which the run has begun."""
    if config.training.precision != AUTO:
        return config
    precision = None
    if folder.has_begun():
        with contextlib.suppress(OSError, ValueError):  # of which `check_unchanged` tells
            precision = recorded_values(folder).get("training.precision", BEFORE_THEY_WERE_KEYS["training.precision"])
    found = {"precision": precision or precision_here(config, worker)}
    return config.model_copy(update={"training": config.training.model_copy(update=found)})
