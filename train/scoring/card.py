"""What all kinds of outputs have in common once they are scored: how long they took, their scores, and a comparison."""

import abc
import dataclasses
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from keras_transformer.inspection.bleu import Score
from keras_transformer.inspection.samples import Sample, samples_of, translate_sources
from keras_transformer.pieces.language_marks import Codes

from .metric_command import ProgramScore
from .significance import Comparison
from .tables import INTERVAL_NOTE, Table

if TYPE_CHECKING:  # it imports TensorFlow
    from keras_transformer.translation.translator import Translator


class TimedTranslations(NamedTuple):
    """Translations of a test set, and how long they took."""

    samples: list[Sample]
    seconds: float  # the preparation of the search included
    cut: int = 0  # of them were ended by their limit, though the model would have continued them

    @property
    def rate(self) -> float:
        """Sentences per second."""
        return len(self.samples) / self.seconds

    def line(self) -> str:
        return f"speed {self.rate:.1f} sentences/s: {self.seconds:.1f} s, preparation of the search included"


def translate_timed(
    translator: "Translator", pairs: list[tuple[str, str]], codes: Sequence[Codes] = ()
) -> TimedTranslations:
    """Translate the source of each (source, reference), and measure how long that takes. codes: their languages."""
    started = time.perf_counter()
    translations = translate_sources(translator, pairs, codes)
    seconds = time.perf_counter() - started
    cut = sum(bool(translation.is_cut) for translation in translations)
    return TimedTranslations(samples_of(pairs, translations), seconds, cut)


class OutputScores(Protocol):
    """The scores of one set of outputs, as a validation has them."""

    @property
    def measured(self) -> tuple[Score, ...]:
        """Every score, the most important one first."""

    @property
    def quality(self) -> float:
        """The number by which weights are chosen, in per cent."""

    @property
    def quality_text(self) -> str:
        """Name and value of the quality, as logs show them."""

    def plotted(self) -> dict[str, float]:
        """The numbers for metrics.jsonl, by name."""


class PrintedScores(OutputScores, Protocol):
    """The scores of one set of outputs, as a Card has them."""

    def lines(self) -> list[str]:
        """What a person reads."""

    def as_json(self) -> dict[str, Any]:
        """What a program reads."""


@dataclasses.dataclass(frozen=True)
class Card(abc.ABC):
    """All statistics of one set of outputs: what `keras-transformer evaluate` prints, and what report.md has of them.

    A kind of outputs has a subclass, with its tables.
    """

    timed: TimedTranslations
    scores: PrintedScores
    comparison: Comparison | None = dataclasses.field(default=None, kw_only=True)  # with other outputs
    by_programs: tuple[ProgramScore, ...] = dataclasses.field(default=(), kw_only=True)  # --metric-command

    @abc.abstractmethod
    def tables(self) -> list[Table]:
        """Where the scores are won and lost."""

    @abc.abstractmethod
    def details(self) -> dict[str, Any]:
        """What a program reads of the tables."""

    def notes(self) -> list[str]:
        """What must be known to read the scores."""
        notes = [INTERVAL_NOTE] * any(score.interval is not None for score in self.scores.measured)
        if self.timed.cut:
            notes.append(
                f"{self.timed.cut:,} outputs were cut at their limit, and may lack their end; a larger extra_length "
                "lets them end"
            )
        return notes

    def score_lines(self) -> list[str]:
        """The scores, how to read them, and the speed."""
        by_programs = [score.line() for score in self.by_programs]
        return [*self.scores.lines(), *by_programs, *self.notes(), self.timed.line()]

    def lines(self) -> list[str]:
        """What a person reads: a few lines of scores, then tables."""
        lines = self.score_lines()
        for table in self.tables():
            lines += ["", *table.lines()]
        if self.comparison:
            lines += ["", *self.comparison.table().lines(), "", *self.comparison.sentences()]
        return lines

    def as_json(self) -> dict[str, Any]:
        """What a program reads."""
        return {
            **self.scores.as_json(),
            "seconds": self.timed.seconds,
            "sentences_per_second": self.timed.rate,
            "cut": self.timed.cut,
            **self.details(),
            "by_programs": [score._asdict() for score in self.by_programs],
            "against": self.comparison.as_json() if self.comparison else None,
        }
