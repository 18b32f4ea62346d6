"""The best validation of a run so far: early stopping and the best checkpoint go by it."""

import json
import math
from typing import Any

from keras_transformer.ground.notations import json_of

from ..config.training import TrainingConfig
from ..workers.workers import Workers
from .progress import Progress

CURVE_OF = {"f1": "bracketing_f1"}  # names of a metric in metrics.jsonl, if it is another one there
UNKNOWN = ""  # the basis of a score in a checkpoint of before it was recorded
FIELDS = ("best_metric", "best_basis", "best_score", "best_step", "validations_since_best")  # of Progress


def count_validation(progress: Progress, validation: Any, metric: str) -> bool:
    """Count a train.validation.validation.Validation after step `progress.step`. Returns whether it is the best so far.

    metric: "bleu", "chrf", "loss" or "f1". A score that is undefined, such as BLEU of one-word references, does not
    count. If the run went by another metric before, or by other text or another search, no validation before counts.
    """
    score, basis = score_of(validation, metric), basis_of(validation, metric)
    if not math.isfinite(score):
        return False
    before = progress.best_metric, progress.best_basis
    is_best = not is_comparable(before, (metric, basis)) or score > progress.best_score
    if is_best:
        progress.best_metric, progress.best_basis = metric, basis
        progress.best_score, progress.best_step = score, progress.step
    progress.validations_since_best = 0 if is_best else progress.validations_since_best + 1
    return is_best


def is_better_than_kept(progress: Progress, validation: Any, metric: str) -> bool:
    """Whether a validation is better than that of the best checkpoint, which is none by another metric or basis."""
    kept, now = (progress.kept_metric, progress.kept_basis), (metric, basis_of(validation, metric))
    return not is_comparable(kept, now) or score_of(validation, metric) > progress.kept_score


def is_comparable(before: tuple[str, str], now: tuple[str, str]) -> bool:
    """Whether two scores can be compared, each given as its metric and its basis."""
    return before[0] == now[0] and before[1] in (UNKNOWN, now[1])


def basis_of(validation: Any, metric: str) -> str:
    """What the score is of: two validations of another basis cannot be compared by this metric."""
    return validation.loss_basis if metric == "loss" else validation.scores_basis


def score_of(validation: Any, metric: str) -> float:
    """How good a validation is: the higher, the better; NaN if it is undefined."""
    if metric == "loss":
        return -validation.loss
    return validation.scores.plotted().get(CURVE_OF.get(metric, metric), math.nan)


def has_score(validation: Any, training: TrainingConfig) -> bool:
    """Return whether `training.best_metric` is defined for a validation."""
    return math.isfinite(score_of(validation, training.best_metric))


def has_stopped_early(progress: Progress, training: TrainingConfig) -> bool:
    """Return whether the last `training.patience` validations were all no better than the best one before them."""
    return (
        training.patience is not None
        and progress.best_metric == training.best_metric
        and progress.validations_since_best >= training.patience
    )


def is_done(progress: Progress, training: TrainingConfig) -> bool:
    """Return whether nothing is left to train."""
    return progress.step >= training.steps or has_stopped_early(progress, training)


def share_best(progress: Progress, workers: Workers) -> None:
    """Copy what the chief knows of the best validation to the Progress of every worker, since all stop together."""
    shared = json_of(workers.text_of_chief(json.dumps({name: getattr(progress, name) for name in FIELDS})))
    for name, value in shared.items():
        setattr(progress, name, value)


def early_stop_sentence(progress: Progress) -> str:
    """Tell why training ended before its last step."""
    score = abs(progress.best_score)
    return (
        f"stopped early after step {progress.step}: the last {progress.validations_since_best} validations were no "
        f"better than the best one, {progress.best_metric} {score:.4g} after step {progress.best_step}"
    )
