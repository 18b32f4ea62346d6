"""Which weights translation uses: an average of checkpoints, those of the last checkpoint, or of the best one."""

import logging
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import keras

from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import save_weights

from ..config.training import TrainingConfig
from ..loop.checkpoints import (
    CheckpointError,
    Checkpoints,
    assign_weights,
    progress_in,
    read_checkpoint,
    read_weights,
    step_of,
)
from ..step.optimizer import AVERAGE
from ..step.schedule_free import slot_name
from .validation import Validation

log = logging.getLogger("train")


class Candidate(NamedTuple):
    """A set of weights that translation could use."""

    name: str  # "the last checkpoint"
    weights: dict[str, Any]  # from weight path to array
    validation: Validation

    @property
    def quality(self) -> float:
        """The quality of the validated outputs as printed: a difference that nobody can see decides nothing."""
        return round(self.validation.scores.quality, 2)

    def __str__(self) -> str:
        return f"{self.name}: validation {self.validation.scores.quality_text}, loss {self.validation.loss:.4f}"


class Selection(NamedTuple):
    """The candidate whose weights are in model.weights.h5, and the others."""

    kept: Candidate
    others: list[Candidate]

    def __str__(self) -> str:
        return "; ".join([f"kept {self.kept}", *map(str, self.others)])


def select_weights(
    folder: RunFolder, training: TrainingConfig, transformer: keras.Model, validator: Callable[[], Validation]
) -> Selection:
    """Write the best candidate to model.weights.h5 (section 6.1 averages 5 checkpoints for base, 20 for big).

    The best one has the highest quality (BLEU, or F1 of trees) or, if that is the same, the lowest loss. Quality comes
    first: averaged weights are less sure of themselves, and label smoothing makes their loss look worse than they
    translate.
    """
    candidates = [
        measured(name, weights, transformer, validator) for name, weights in candidate_weights(folder, training)
    ]
    kept = max(candidates, key=lambda candidate: (candidate.quality, -candidate.validation.loss))
    selection = Selection(kept, [candidate for candidate in candidates if candidate is not kept])
    log.info(selection)
    assign_weights(transformer, kept.weights)
    save_weights(transformer, folder.weights)
    return selection


def candidate_weights(folder: RunFolder, training: TrainingConfig) -> list[tuple[str, dict[str, Any]]]:
    """Names and weights of the candidates. No set of weights is there twice."""
    checkpoints = Checkpoints(folder.checkpoints)
    average, paths = checkpoints.average(training.average_checkpoints)
    last, last_paths = checkpoints.average(1)
    candidates = [(f"the average of the last {len(paths)} checkpoints", average)] if len(paths) > 1 else []
    candidates.append(("the last checkpoint", last))
    if training.ema_decay is not None:
        candidates.append(("the moving average of the weights", moving_average(last_paths[-1])))
    if training.keep_best:
        candidates += best_candidate(checkpoints, last_paths[-1])
    return candidates


def moving_average(path: pathlib.Path) -> dict[str, Any]:
    """The moving averages in a checkpoint, by weight path. A frozen weight has no average and is taken as it is."""
    slots = {name.rpartition("/")[2]: array for name, array in read_checkpoint(path, "optimizer/").items()}
    return {name: slots.get(slot_name(name, AVERAGE), weight) for name, weight in read_weights(path).items()}


def best_candidate(checkpoints: Checkpoints, last: pathlib.Path) -> list[tuple[str, dict[str, Any]]]:
    """Name and weights of the best checkpoint; nothing if it is the last one, or if it is damaged, which is logged.

    A file of another step than the kept one is left over from steps that were trained again with other settings.
    """
    progress = progress_in(last)
    paths = [path for path in checkpoints.best_paths() if progress and step_of(path) == progress.kept_step]
    if not paths or step_of(paths[-1]) == step_of(last):
        return []
    try:
        return [(f"the best checkpoint, of step {step_of(paths[-1])}", read_weights(paths[-1]))]
    except CheckpointError as error:
        log.warning("%s It is left out of the choice of weights.", error)
        return []


def measured(
    name: str, weights: dict[str, Any], transformer: keras.Model, validator: Callable[[], Validation]
) -> Candidate:
    """Validate these weights, which the transformer keeps. Returns the Candidate."""
    assign_weights(transformer, weights)
    return Candidate(name, weights, validator())
