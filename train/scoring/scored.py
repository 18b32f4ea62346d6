"""Sentences with references on which a run is scored, whatever it writes; and the outputs that it is compared with."""

import abc
import dataclasses
import pathlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from keras_transformer.inspection.bleu import Scores
from keras_transformer.inspection.samples import Sample, translate_pairs
from keras_transformer.pieces.language_marks import Codes
from keras_transformer.pieces.tokenizer import Tokenizer

from ..config.data import DataSection
from ..data.corpus import Split
from ..data.prepare import PreparedData
from .card import Card, OutputScores, TimedTranslations
from .significance import DEFAULT_TEST

if TYPE_CHECKING:  # it imports TensorFlow
    from keras_transformer.translation.translator import Translator


class Opponent(NamedTuple):
    """The outputs that --against names."""

    name: str  # of a run folder or a file
    outputs: list[str]
    tokenizer: Tokenizer | None = None  # of the run; None for a file


class Use(NamedTuple):
    """The words with which report.md says what a model is for."""

    does: str  # what follows "It"; {languages} is replaced by those of the run
    done: str  # what is done to a sentence
    risk: str  # what may go wrong


@dataclasses.dataclass(frozen=True)
class Scored(abc.ABC):
    """Sentences with references, and how outputs for them are scored. Each kind of outputs is a subclass.

    name: as printed, "data.test". pairs: sentences and references.
    """

    quality: ClassVar[str]  # the measure by which weights are chosen
    use: ClassVar[Use]

    name: str
    pairs: list[tuple[str, str]]

    @property
    def told(self) -> Sequence[Codes]:
        """The languages of each pair, of a text that names them."""
        return ()

    def untold(self) -> Self:
        """The same, without the languages of the pairs."""
        return self

    @classmethod
    @abc.abstractmethod
    def of_run(
        cls,
        data: DataSection | None,
        files: tuple[pathlib.Path, pathlib.Path] | None = None,
        is_tokenised: bool = False,
    ) -> Self:
        """What `keras-transformer evaluate` scores: the test set of the section `data`, or two files.

        files: sentences and references. is_tokenised: see ScoredText.
        """

    @classmethod
    @abc.abstractmethod
    def of_split(cls, split: Split, config: DataSection, data: PreparedData) -> Self:
        """What report.md scores: a split of a run, whose training text is in memory."""

    @classmethod
    @abc.abstractmethod
    def validation(cls, split: Split, count: int) -> Callable[[Scores, Sequence[Sample]], OutputScores]:
        """Return a function from the text scores and the samples of a validation to its OutputScores.

        split, count: the samples are those of so many pairs of this split, at equal distances.
        """

    @staticmethod
    @abc.abstractmethod
    def settings(is_constrained: bool) -> dict[str, Any]:
        """The options of `keras-transformer evaluate`, by name, that only this kind of outputs has."""

    @abc.abstractmethod
    def read(self, path: pathlib.Path) -> list[str]:
        """The outputs in a file, as `written` makes them. Raises CorpusError unless it has one for each sentence."""

    @abc.abstractmethod
    def written(self, outputs: Sequence[str]) -> Sequence[str]:
        """The lines that --output gets."""

    @abc.abstractmethod
    def score(
        self,
        timed: TimedTranslations,
        tokenizer: Tokenizer,
        opponent: Opponent | None = None,
        paired_test: str = DEFAULT_TEST,
    ) -> Card:
        """Return the Card of these outputs, with a comparison if there is an opponent. tokenizer: of the model."""


def opponent_of(against: pathlib.Path, scored: Scored, load: Callable[[pathlib.Path], "Translator"]) -> Opponent:
    """The outputs that --against names: those of another run, which `load` opens, or those in a file."""
    if not against.is_dir():
        return Opponent(str(against), scored.read(against))
    translator = load(against)
    outputs = [sample.translation for sample in translate_pairs(translator, scored.pairs, scored.told)]
    return Opponent(str(against), outputs, translator.tokenizer)
