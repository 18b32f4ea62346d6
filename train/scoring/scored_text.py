"""The text that `keras-transformer evaluate` scores: a run's own test set, or files; and what it is compared with."""

import logging
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

from keras_transformer.config import ConfigError
from keras_transformer.run_folder import RunFolder
from keras_transformer.samples import translate_pairs
from keras_transformer.tokenizer import Tokenizer

from ..config.data import DataSection
from ..config.recorded import load_recorded
from ..data.corpus import CorpusError, skipped_sentence
from ..data.files import lines_of
from ..data.prepare import load_test_split

log = logging.getLogger("train")


class Others(NamedTuple):
    """What --against names."""

    translations: list[str]
    tokenizer: Tokenizer | None = None  # of the run; None for those of a file


def data_of_run(run: pathlib.Path, has_text: bool) -> DataSection | None:
    """The section `data` of the run's configuration; None for a run without one, such as that of examples/fit.py.

    Raises ConfigError if it has none and there is no other text to score.
    """
    path = RunFolder(run).config
    if path.exists():
        return load_recorded(path).data
    if not has_text:
        raise ConfigError(f"{run} has no {path.name}, which would name a test set: give --source and --reference.")
    return None


class ScoredText(NamedTuple):
    """What is translated and scored."""

    name: str  # as printed: "data.test"
    pairs: list[tuple[str, str]]  # sentences and their references


def text_of_run(data: DataSection, output: pathlib.Path | None) -> ScoredText:
    """The text of the test set, or of the validation set if there is none. Needs no training text.

    Pairs with an empty side are left out, which is logged: they are not counted, and `output`, to which translations
    are to be written, does not have their lines.
    """
    split = load_test_split(data)
    pairs = list(split)
    if split.skipped:
        log.warning(
            "pairs of %s without text on one side are left out, and not counted: %s%s",
            split.name, skipped_sentence(split.skipped), f". --output {output} has no lines for them" if output else "",
        )  # fmt: skip
    return ScoredText(split.name, pairs)


def other_translations(
    against: pathlib.Path, pairs: list[tuple[str, str]], load: Callable[[pathlib.Path], Any]
) -> Others:
    """The translations that --against names: of another run, which `load` opens, or the lines of a file.

    Raises CorpusError if the file has not one line per pair.
    """
    if against.is_dir():
        translator = load(against)
        return Others([sample.translation for sample in translate_pairs(translator, pairs)], translator.tokenizer)
    lines = list(lines_of(against))
    if len(lines) != len(pairs):
        raise CorpusError(
            f"--against {against} has {len(lines):,} lines, but there are {len(pairs):,} sentences: give the file one "
            "translation per line, in the order of the sentences."
        )
    return Others(lines)
