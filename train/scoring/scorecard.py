"""The statistics of translations: scores in all forms, where they are won and lost, and a comparison with others."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from keras_transformer.inspection.bleu import (
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
from keras_transformer.inspection.samples import Sample
from keras_transformer.pieces.languages import warn_of_unspaced
from keras_transformer.pieces.normalization import lower_case
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.text.survival import Survival, survival

from ..data.corpus import Split
from .breakdown import Breakdown, WordCounts, break_down, words_known
from .card import Card, TimedTranslations
from .significance import Comparison, differences, largest_differences
from .tables import Table

SURVIVAL_HEADS = ("kind", "in sources", "in translations", "per cent")
LOWERCASE_NOTE = (
    "a model here writes lower case alone: tables are of lower-cased text; scores of raw text that is not lower-cased, "
    "and exact, count capitals as mistakes"
)


@dataclasses.dataclass(frozen=True)
class TextComparison(Comparison):
    """Other translations of the same sentences, and how they differ; `lines` are LineDifferences."""

    breakdown: Breakdown
    noun = "translations"
    measure = "sentence chrF"

    def as_json(self) -> dict[str, Any]:
        return {**super().as_json(), **self.breakdown.as_json()}


@dataclasses.dataclass(frozen=True)
class Scorecard(Card):
    """The statistics of one set of translations, and of how they differ from another."""

    scores: Scores
    breakdown: Breakdown
    is_lowercase: bool  # whether the breakdown is of lower-cased text
    comparison: TextComparison | None = dataclasses.field(default=None, kw_only=True)

    def notes(self) -> list[str]:
        return super().notes() + [LOWERCASE_NOTE] * self.is_lowercase

    def tables(self) -> list[Table]:
        """The breakdown as tables, with columns of the other translations if there are any; and what came through."""
        tables = self.breakdown.tables(self.comparison.breakdown if self.comparison else None)
        rows = [
            (kind, f"{of_kind.in_sources:,}", f"{of_kind.in_translations:,}", f"{of_kind.per_cent:.1f}")
            for kind, of_kind in self.survived.items()
        ]
        return [*tables, Table("What came through", SURVIVAL_HEADS, rows)] if rows else tables

    @functools.cached_property
    def survived(self) -> dict[str, Survival]:
        """The numbers, URLs and so on of the sources that stand in the translations, by kind."""
        return survival((sample.source, sample.translation) for sample in self.timed.samples)

    def details(self) -> dict[str, Any]:
        survived = {kind: of_kind._asdict() for kind, of_kind in self.survived.items()}
        return {"is_lowercase": self.is_lowercase, **self.breakdown.as_json(), "survived": survived}


@dataclasses.dataclass(frozen=True)
class Evaluator:
    """How translations of one test set are measured.

    language: of the translations. parts: the name of the part that each sentence belongs to, if there are several.
    counted: how often words occur in the training text. length_bleu: the form of BLEU
    that sentences of each length have; None for that of raw text, lower-cased if `is_lowercase`.
    is_lowercase: whether a model, this one or the one that it is compared with, writes lower case alone. The breakdown,
    and which sentences differ most, are then of lower-cased text.
    """

    language: str
    counted: WordCounts
    length_bleu: Measure | None = None
    is_lowercase: bool = False
    parts: Sequence[str] = ()

    def scorecard(self, timed: TimedTranslations) -> Scorecard:
        """Score translations in all forms, with confidence intervals."""
        _, references, translations = zip(*timed.samples, strict=True)
        warn_of_unspaced(references, self.language)
        scores = score(translations, references, all_measures(self.language), RESAMPLES)
        return Scorecard(timed, scores, self.break_down(timed.samples), is_lowercase=self.is_lowercase)

    def compared(self, card: Scorecard, name: str, theirs: Sequence[str], paired_test: str) -> Scorecard:
        """Return the Scorecard with a TextComparison: other translations, called `name`, by each defined measure."""
        samples = card.timed.samples
        _, references, ours = zip(*samples, strict=True)
        pairs = zip(all_measures(self.language), card.scores.measured, strict=True)
        measures = [measure for measure, own_score in pairs if not own_score.undefined]
        others = [sample._replace(translation=text) for sample, text in zip(samples, theirs, strict=True)]
        comparison = TextComparison(
            name,
            paired_test,
            differences(ours, theirs, references, measures, paired_test),
            largest_differences(self.compared_as(samples), [sample.translation for sample in self.compared_as(others)]),
            self.break_down(others),
        )
        return dataclasses.replace(card, comparison=comparison)

    def break_down(self, samples: Sequence[Sample]) -> Breakdown:
        bleu, chrf = (lower_bleu, LOWER_CHRF) if self.is_lowercase else (raw_bleu, CHRF)
        form = self.length_bleu or bleu(self.language)
        return break_down(self.compared_as(samples), self.counted, form, chrf, self.parts)

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
    text: str,
) -> Evaluator:
    """The Evaluator of a model, or of several that are compared, that read and write by these tokenizers.

    splits: returns the training text, which is called `text`; if it cannot be read, the references of `samples` are
    counted.
    """
    case = next((tokenizer for tokenizer in tokenizers if tokenizer.is_lowercase), tokenizers[0])
    counted = words_known(splits, [sample.reference for sample in samples], language, case.restored, text)
    return Evaluator(language, counted, is_lowercase=case.is_lowercase)
