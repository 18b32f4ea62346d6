"""What a run writes, text or trees: how its model reads a line, and what commands write for it."""

import abc
import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from keras_transformer.ground.errors import ConfigError
from keras_transformer.parsing.written import parsed_sentences, with_trees
from keras_transformer.pieces.translation import Translation
from keras_transformer.runs.inference import TEXT, TREES
from keras_transformer.runs.run_folder import RunFolder


@dataclasses.dataclass(frozen=True)
class Outputs(abc.ABC):
    """The outputs of one run folder. Each `check_` raises ConfigError for an option that does not fit them.

    search: the values that the run has for options of the search which are left out.
    """

    name: ClassVar[str]

    run: str | os.PathLike
    search: Mapping[str, Any]

    @abc.abstractmethod
    def read(self, lines: Sequence[str]) -> Sequence[str]:
        """The lines as the model reads them."""

    @abc.abstractmethod
    def written(
        self, lines: Sequence[str], outputs: Sequence[Sequence[Translation]], first_line: int
    ) -> Sequence[Sequence[Translation]]:
        """What is written for each line, the first of which has the number `first_line`, from the model's outputs."""

    @abc.abstractmethod
    def check_text(self, instead: str) -> None:
        """Refuse trees. `instead` is the last sentence of the error."""

    @abc.abstractmethod
    def check_constrained(self, prefix: object = None) -> None:
        """Refuse --constrained of text, and beside a prefix, or a file of them."""

    @abc.abstractmethod
    def check_drawn(self, is_one_per_line: bool) -> None:
        """Refuse --draw of text, and unless it is one output per line without its score."""


class Text(Outputs):
    """Translations: a line is read and written as it is."""

    name = TEXT

    def read(self, lines: Sequence[str]) -> Sequence[str]:
        return lines

    def written(
        self, lines: Sequence[str], outputs: Sequence[Sequence[Translation]], first_line: int
    ) -> Sequence[Sequence[Translation]]:
        return outputs

    def check_text(self, instead: str) -> None:
        pass

    def check_constrained(self, prefix: object = None) -> None:
        self._refuse("--constrained")

    def check_drawn(self, is_one_per_line: bool) -> None:
        self._refuse("--draw")

    def _refuse(self, option: str) -> None:
        RunFolder(self.run).check_exists()
        raise ConfigError(f"{option} is for a run that writes trees, and {self.run} writes text: leave it out.")


class Trees(Outputs):
    """Trees over the words of a line. The model reads words between spaces and writes a line of brackets."""

    name = TREES

    def read(self, lines: Sequence[str]) -> Sequence[str]:
        return parsed_sentences(lines)

    def written(
        self, lines: Sequence[str], outputs: Sequence[Sequence[Translation]], first_line: int
    ) -> Sequence[Sequence[Translation]]:
        return with_trees(lines, outputs, first_line)

    def check_text(self, instead: str) -> None:
        raise ConfigError(f"{self.run} writes trees, not text. {instead}")

    def check_constrained(self, prefix: object = None) -> None:
        if prefix:
            raise ConfigError("--constrained contradicts --target-prefix and --target-prefixes: give one of them.")

    def check_drawn(self, is_one_per_line: bool) -> None:
        if not is_one_per_line:
            raise ConfigError("--draw draws the best tree of each sentence: leave out --n-best and --scores.")
        try:
            import nltk  # noqa: F401
        except ImportError:
            raise ConfigError("--draw needs the package nltk, which is not installed: pip install nltk.") from None


KINDS = {kind.name: kind for kind in (Text, Trees)}


def outputs_of(run: str | os.PathLike) -> Outputs:
    """The Outputs of a run folder. Raises ConfigError if its inference.json is damaged."""
    inference = RunFolder(run).inference()
    return KINDS[inference.outputs](run, inference.search)
