"""All statistics of one set of translations: what `keras-transformer evaluate` prints and report.md has."""

import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from keras_transformer.bleu import (
    CHRF,
    LOWER_CHRF,
    RESAMPLES,
    Measure,
    Scores,
    all_measures,
    lower_bleu,
    raw_bleu,
    score,
)
from keras_transformer.commands.console import on_one_line
from keras_transformer.samples import Sample, translate_pairs
from keras_transformer.tokenizer import Tokenizer, lower_case
from keras_transformer.translator import Translator

from ..data.corpus import WHOLE_TEXT, Split
from .breakdown import Breakdown, WordCounts, break_down, words_known
from .significance import PairedComparison, differences, largest_differences
from .tables import INTERVAL_NOTE, Table

LOWERCASE_NOTE = (
    "a model here writes lower case alone: tables are of lower-cased text; scores of raw text that is not lower-cased, "
    "and exact, count capitals as mistakes"
)


class Timed(NamedTuple):
    """Translations of a test set, and how long they took."""

    samples: list[Sample]
    seconds: float  # the preparation of the search included

    @property
    def rate(self) -> float:
        """Sentences per second."""
        return len(self.samples) / self.seconds

    def line(self) -> str:
        return f"speed {self.rate:.1f} sentences/s: {self.seconds:.1f} s, preparation of the search included"


@dataclasses.dataclass(frozen=True)
class Comparison(PairedComparison):
    """Other translations of the same sentences, and how they differ; `lines` are LineDifferences."""

    breakdown: Breakdown

    def sentences(self) -> list[str]:
        """The lines that differ most, as printed lines."""
        if not self.lines:
            return ["No two translations differ in sentence chrF."]
        lines = [f"The {len(self.lines)} sentences that differ most, by sentence chrF:"]
        for found in self.lines:
            lines += [
                f"  sentence {found.line}",
                f"    source            {on_one_line(found.source)}",
                f"    reference         {on_one_line(found.reference)}",
                f"    this   chrF {found.our_chrf:5.1f} {on_one_line(found.ours)}",
                f"    other  chrF {found.their_chrf:5.1f} {on_one_line(found.theirs)}",
            ]
        return lines

    def as_json(self) -> dict[str, Any]:
        return {**super().as_json(), **self.breakdown.as_json()}


@dataclasses.dataclass(frozen=True)
class Scorecard:
    """The statistics of one set of translations, and of how they differ from another."""

    timed: Timed
    scores: Scores
    breakdown: Breakdown
    comparison: Comparison | None = None
    is_lowercase: bool = False  # whether the breakdown is of lower-cased text

    def lines(self) -> list[str]:
        """What a person reads: a few lines of scores, then tables."""
        lines = self.score_lines()
        for table in self.tables():
            lines += ["", *table.lines()]
        if self.comparison:
            lines += ["", *self.comparison.table().lines(), "", *self.comparison.sentences()]
        return lines

    def score_lines(self) -> list[str]:
        has_intervals = any(found.margin is not None and not found.undefined for found in self.scores.measured)
        notes = [INTERVAL_NOTE] * has_intervals + [LOWERCASE_NOTE] * self.is_lowercase
        return [*self.scores.lines(), *notes, self.timed.line()]

    def tables(self) -> list[Table]:
        """The breakdown as tables, with columns of the other translations if there are any."""
        return self.breakdown.tables(self.comparison.breakdown if self.comparison else None)

    def as_json(self) -> dict[str, Any]:
        """What a program reads."""
        return {
            "sentences": self.scores.sentences,
            "scores": [found.as_json() for found in self.scores.measured],
            "exact": self.scores.exact,
            "is_lowercase": self.is_lowercase,
            "seconds": self.timed.seconds,
            "sentences_per_second": self.timed.rate,
            **self.breakdown.as_json(),
            "against": self.comparison.as_json() if self.comparison else None,
        }


@dataclasses.dataclass(frozen=True)
class Evaluator:
    """How translations of one test set are measured.

    language: of the translations. counted: how often words occur in the training text. length_bleu: the form of BLEU
    that sentences of each length have; None for that of raw text, lower-cased if `is_lowercase`.
    is_lowercase: whether a model, this one or the one that it is compared with, writes lower case alone. The breakdown,
    and which sentences differ most, are then of lower-cased text.
    """

    language: str
    counted: WordCounts
    length_bleu: Measure | None = None
    is_lowercase: bool = False

    def scorecard(self, timed: Timed) -> Scorecard:
        """Score translations in all forms, with confidence intervals."""
        _, references, translations = zip(*timed.samples, strict=True)
        scores = score(translations, references, all_measures(self.language), RESAMPLES)
        return Scorecard(timed, scores, self.break_down(timed.samples), is_lowercase=self.is_lowercase)

    def compared(self, card: Scorecard, name: str, theirs: Sequence[str], paired_test: str) -> Scorecard:
        """Return the Scorecard with a Comparison with other translations, called `name`, by each defined measure."""
        samples = card.timed.samples
        _, references, ours = zip(*samples, strict=True)
        pairs = zip(all_measures(self.language), card.scores.measured, strict=True)
        measures = [measure for measure, found in pairs if not found.undefined]
        others = [sample._replace(translation=text) for sample, text in zip(samples, theirs, strict=True)]
        comparison = Comparison(
            name,
            paired_test,
            differences(ours, theirs, references, measures, paired_test),
            largest_differences(self.compared_as(samples), [sample.translation for sample in self.compared_as(others)]),
            self.break_down(others),
        )
        return dataclasses.replace(card, comparison=comparison)

    def break_down(self, samples: Sequence[Sample]) -> Breakdown:
        bleu, chrf = (lower_bleu, LOWER_CHRF) if self.is_lowercase else (raw_bleu, CHRF)
        return break_down(self.compared_as(samples), self.counted, self.length_bleu or bleu(self.language), chrf)

    def compared_as(self, samples: Sequence[Sample]) -> list[Sample]:
        """The samples with references and translations in lower case, if a model knows no other."""
        if not self.is_lowercase:
            return list(samples)
        return [Sample(source, lower_case(reference), lower_case(text)) for source, reference, text in samples]


def evaluator_of(
    tokenizers: Sequence[Tokenizer],
    language: str,
    splits: Callable[[], Iterable[Split]],
    samples: Sequence[Sample],
    text: str = WHOLE_TEXT,
) -> Evaluator:
    """The Evaluator of a model, or of several that are compared, that read and write by these tokenizers.

    splits: returns the training text, which is called `text`; if it cannot be read, the references of `samples` are
    counted.
    """
    case = next((tokenizer for tokenizer in tokenizers if tokenizer.is_lowercase), tokenizers[0])
    counted = words_known(splits, [sample.reference for sample in samples], language, case.restored, text)
    return Evaluator(language, counted, is_lowercase=case.is_lowercase)


def translate_timed(translator: Translator, pairs: list[tuple[str, str]]) -> Timed:
    """Translate the source of each (source, reference), and measure how long that takes."""
    started = time.perf_counter()
    samples = translate_pairs(translator, pairs)
    return Timed(samples, time.perf_counter() - started)
