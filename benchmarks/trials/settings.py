"""A run stands for a trial only if it was trained with the trial's settings: old rows and new ones are not mixed."""

import pathlib
from collections.abc import Sequence, Set

from benchmarks.errors import BenchmarkError
from keras_transformer.runs.run_folder import RunFolder
from train.config.recorded import load_recorded
from train.config.run import RunConfig, load_config
from train.config.settings import effective_settings
from train.config.training import AUTO

FOUND = {"training.find_micro_batches", "training.micro_batches"}  # config.toml has what was found, not what was asked
CHOSEN = {"training.precision"}  # and the precision that a machine has chosen
OF_GIVEN = {"tokenizer.vocab_size", "tokenizer.normalization"}  # config.toml has those of a tokenizer that is given

OF_SELECTION = {  # they change no update, only which weights stay; best_metric without training.patience, at least
    "training.average_checkpoints",
    "training.best_metric",
    "training.keep_best",
}


def has_begun(path: pathlib.Path) -> bool:
    """Whether there is a run at `path` that training would continue, or that has ended."""
    return RunFolder(path).has_begun() or RunFolder(path).scores.exists()


def check_settings(
    path: pathlib.Path, config: pathlib.Path, overrides: Sequence[str], free: Set[str] = frozenset()
) -> None:
    """Raises BenchmarkError if the run at `path`, if there is one, was begun with other settings than `free` ones."""
    if has_begun(path):
        remedy = "Remove that folder, or name another one with --folder."
        check_same_settings(load_recorded(RunFolder(path).config), config, overrides, f"{path} is", remedy, free)


def check_same_settings(
    trained: RunConfig,
    config: pathlib.Path,
    overrides: Sequence[str],
    subject: str,
    remedy: str,
    free: Set[str] = frozenset(),
) -> None:
    """Raises BenchmarkError, which has `subject` and `remedy`, unless the settings of `trained` are those asked for.

    Where a run is kept does not count, nor do the keys in `free`. A default that is written out is another setting if
    its value depends on other keys, as that of model.key_dim does.
    """
    asked = load_config(config, overrides)
    if asked.training.find_micro_batches:
        free = free | FOUND
    if asked.training.precision == AUTO:
        free = free | CHOSEN
    if asked.effective_tokenizer.model:
        free = free | OF_GIVEN
    before, now = (
        {key: value for key, value in effective_settings(one).items() if key not in free} for one in (trained, asked)
    )
    changed = [key for key in sorted(before.keys() | now.keys()) if before.get(key) != now.get(key)]
    if changed:
        differences = "; ".join(f"{key} was {shown(before, key)} and is {shown(now, key)}" for key in changed)
        raise BenchmarkError(f"{subject} a run with other settings: {differences}. {remedy}")


def shown(settings: dict[str, bool | int | float | str], key: str) -> str:
    """A value for a message."""
    return repr(settings[key]) if key in settings else "not set"
