"""What the outputs of a run are: text, or trees over the words of its sentences."""

import logging
import os
import tomllib
from typing import Any

from keras_transformer.config import ConfigError
from keras_transformer.decoding.options import RUN_OPTIONS
from keras_transformer.run_folder import RunFolder

log = logging.getLogger("keras_transformer")


def tree_search(run: str | os.PathLike) -> dict[str, Any] | None:
    """How a run that was trained on a treebank is searched, as its config.toml says; None for a run that writes text.

    A run folder without a config.toml writes text; so does one whose config.toml is damaged, which is logged.
    """
    path = RunFolder(run).config
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        if values["data"]["source"] != "treebank":
            return None
        return {name: value for name, value in values["translation"].items() if name in RUN_OPTIONS}
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        log.warning("%s cannot be read (%s): outputs are taken for text", path, error)
        return None


def check_writes_text(run: str | os.PathLike, instead: str) -> None:
    """Raises ConfigError, whose last sentence is `instead`, for a run that writes trees."""
    if tree_search(run) is not None:
        raise ConfigError(f"{run} was trained on a treebank: it writes brackets, not text. {instead}")


def check_constrained(run: str | os.PathLike, has_trees: bool, prefix: str = "") -> None:
    """Raises ConfigError if the option --constrained has nothing to constrain, or contradicts a prefix."""
    RunFolder(run).check_exists()
    if not has_trees:
        raise ConfigError(
            f"--constrained is for trees, and {run} writes text: its configuration does not have data.source = "
            '"treebank".'
        )
    if prefix:
        raise ConfigError("--constrained and --target-prefix contradict each other: give one of them.")


def check_draws_trees(run: str | os.PathLike, has_trees: bool, has_one_output: bool) -> None:
    """Raises ConfigError if the option --draw has nothing to draw, or cannot."""
    RunFolder(run).check_exists()
    if not has_trees:
        raise ConfigError(
            f'--draw draws trees, and {run} writes text: its configuration does not have data.source = "treebank".'
        )
    if not has_one_output:
        raise ConfigError("--draw draws the best tree of each sentence: leave out --n-best and --scores.")
    try:
        import nltk  # noqa: F401
    except ImportError:
        raise ConfigError("--draw needs the package nltk, which is not installed: pip install nltk.") from None
