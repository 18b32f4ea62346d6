"""A run whose training is done: which keys of its configuration may still change."""

from collections.abc import Collection
from typing import NamedTuple

from keras_transformer.ground.errors import ConfigError
from keras_transformer.runs.run_folder import RunFolder

from ..config.model import OF_TRAINING
from ..config.run import KEYS, RunConfig
from ..config.training import TrainingConfig
from ..loop.best import is_done
from ..loop.checkpoints import last_progress
from ..loop.progress import Progress
from .history import Changes, history, joined

SECTIONS = ("translation.", "model.")  # all of them: another model has been refused before


class Standing(NamedTuple):
    """How far a run is."""

    step: int = 0  # of the last checkpoint; 0 without one
    is_done: bool = False  # True if no steps are left to train


def where_it_stands(folder: RunFolder, training: TrainingConfig) -> Standing:
    """How far the run in `folder` is by its last checkpoint."""
    progress = last_progress(folder.checkpoints)
    return Standing(progress.step, is_done(progress, training)) if progress is not None else Standing()


def refuse_untrained(folder: RunFolder, config: RunConfig, changes: Changes, paths: Collection[str]) -> None:
    """Raises ConfigError if nothing is left to train and a key changes that decides what training does.

    config.toml and report.md would otherwise claim that the weights were trained so. paths: keys that name files, which
    may have moved.
    """
    progress = last_progress(folder.checkpoints)
    if progress is None or not is_done(progress, config.training):
        return
    for part in reversed(history(folder)):
        if part.step >= progress.step:  # a process that trained nothing: the weights are of what was before it
            changes = joined(part.changes, changes)
    after_training = config.keys_in("AFTER_TRAINING")
    if config.told.are_told or (config.data.clean and config.data.clean.languages):
        after_training -= {"data.source_language", "data.target_language"}  # they decide pieces, or which pairs
    untrained = [
        f"{key} was {before} and is {now}"
        for key, (before, now) in changes.items()
        if key not in after_training and key not in paths and not key.startswith(SECTIONS)
        if key in KEYS and not is_default(config, key, before, now) and not is_of_preset(config, key, before, now)
        if not is_where_it_stands(key, config, progress)
    ]
    if untrained:
        raise ConfigError(
            f"{folder.path} has been trained for {progress.step} steps, and nothing would be trained with what has "
            f"changed: {'; '.join(untrained)}. Set another run_folder, or go back to that configuration."
        )


def is_where_it_stands(key: str, config: RunConfig, progress: Progress) -> bool:
    """Whether this is the number of steps, and a run of just as many would have trained the same.

    So a run that was stopped can be ended where it stands. With a cool-down or a cosine, its last steps would have been
    others.
    """
    training = config.training
    return key == "training.steps" and training.steps == progress.step and not training.rate_ends


def is_default(config: RunConfig, key: str, before: str, now: str) -> bool:
    """Whether a key that an older record does not have has its default."""
    section, _, name = key.partition(".")
    fields = type(getattr(config, section)).model_fields
    return before == "not set" and name in fields and now == repr(fields[name].default)


def is_of_preset(config: RunConfig, key: str, before: str, now: str) -> bool:
    """Whether a key of OF_TRAINING is the preset's, and is written out now, or no longer."""
    section, _, name = key.partition(".")
    model = config.model.resolve(config.tokenizer.vocab_size)
    if section != "training" or name not in OF_TRAINING or name not in model.fields():
        return False
    return {before, now} == {"not set", repr(getattr(model, name))}
