"""Translations that are scored: of a run's own test set, or of the lines of two files."""

import dataclasses
import logging
import pathlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from keras_transformer.ground.errors import ConfigError
from keras_transformer.inspection.bleu import Scores, tokenised_bleu
from keras_transformer.inspection.samples import Sample
from keras_transformer.pieces.language_marks import Codes
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.runs.run_folder import RunFolder

from ..config.data import DataSection
from ..config.recorded import load_recorded
from ..data.corpus import WHOLE_TEXT, CorpusError, Split, skipped_sentence
from ..data.files import aligned_pairs, lines_of
from ..data.prepare import PreparedData, load_test_split
from ..data.statistics import own_part
from .breakdown import recorded, training_splits
from .card import OutputScores, TimedTranslations
from .scorecard import Scorecard, evaluator_of
from .scored import Opponent, Scored, Use
from .significance import DEFAULT_TEST

log = logging.getLogger("train")

BLANK_LINES_NAMED = 10  # at most, in a warning


@dataclasses.dataclass(frozen=True)
class ScoredText(Scored):
    """Sentences and their reference translations.

    Pairs without text on one side are left out, whatever names the text: `blank` has their numbers, from 1. A file of
    translations has a line for each of them nevertheless, so that its lines are those of the text.

    language: of the translations. training: returns the training text, called `training_name`, whose words are counted.
    is_tokenised: whether BLEU by length is of Moses-tokenised, lower-cased text. parts: the name of the part of the
    text, such as "en to de", that each pair belongs to; none if nobody names parts. codes: the languages of each pair.
    """

    quality = "BLEU"
    use = Use(
        does="translates single sentences, {languages},",
        done="translated",
        risk=", as in medicine or law: a translation may leave out, add or change something, and read well "
        "nevertheless.",
    )

    language: str
    training: Callable[[], Iterable[Split]]
    training_name: str = WHOLE_TEXT
    is_tokenised: bool = False
    blank: frozenset[int] = frozenset()
    parts: Sequence[str] = ()
    codes: Sequence[Codes] = ()

    @property
    def told(self) -> Sequence[Codes]:
        return self.codes

    def untold(self) -> Self:
        return dataclasses.replace(self, codes=())

    @classmethod
    def of_run(
        cls,
        data: DataSection | None,
        files: tuple[pathlib.Path, pathlib.Path] | None = None,
        is_tokenised: bool = False,
    ) -> Self:
        if files:
            split = Split("{} and {}".format(*files), lambda: iter(aligned_pairs(*files)))
        else:
            split = load_test_split(recorded(data))
        pairs = pairs_with_text(split)
        language = data.target_language if data else ""
        return cls(
            split.name,
            pairs,
            language,
            lambda: training_splits(data),
            is_tokenised=is_tokenised,
            blank=frozenset(split.blank),
            parts=parts_of(split),
            codes=[] if files else codes_of(split),
        )

    @classmethod
    def of_split(cls, split: Split, config: DataSection, data: PreparedData) -> Self:
        own_text = data.corpus.train.shards[: len(data.train.shards)]  # of the chief, which has the first shards
        pairs, text = list(split), own_part(data) or WHOLE_TEXT
        return cls(
            split.name,
            pairs,
            config.target_language,
            lambda: own_text,
            text,
            parts=parts_of(split),
            codes=codes_of(split),
        )

    @classmethod
    def validation(cls, split: Split, count: int) -> Callable[[Scores, Sequence[Sample]], OutputScores]:
        return lambda scores, samples: scores

    @staticmethod
    def settings(is_constrained: bool) -> dict[str, Any]:
        return {}

    def read(self, path: pathlib.Path) -> list[str]:
        lines, expected = list(lines_of(path)), len(self.pairs) + len(self.blank)
        if len(lines) != expected:
            blank = f", {len(self.blank):,} of them without text on one side" if self.blank else ""
            raise CorpusError(
                f"--against {path} has {len(lines):,} line{'s' * (len(lines) != 1)}, but {self.name} has "
                f"{expected:,}{blank}: give the file one translation per line, in the order of the sentences."
            )
        return [line for number, line in enumerate(lines, 1) if number not in self.blank]

    def written(self, outputs: Sequence[str]) -> Sequence[str]:
        left = iter(outputs)
        numbers = range(1, len(outputs) + len(self.blank) + 1)
        return ["" if number in self.blank else next(left) for number in numbers]

    def score(
        self,
        timed: TimedTranslations,
        tokenizer: Tokenizer,
        opponent: Opponent | None = None,
        paired_test: str = DEFAULT_TEST,
    ) -> Scorecard:
        tokenizers = [tokenizer, *([opponent.tokenizer] if opponent and opponent.tokenizer else [])]
        evaluator = evaluator_of(tokenizers, self.language, self.training, timed.samples, self.training_name)
        length_bleu = tokenised_bleu(self.language) if self.is_tokenised else None
        evaluator = dataclasses.replace(evaluator, length_bleu=length_bleu, parts=self.parts)
        card = evaluator.scorecard(timed)
        return evaluator.compared(card, opponent.name, opponent.outputs, paired_test) if opponent else card


def data_of_run(run: pathlib.Path, has_files: bool) -> DataSection | None:
    """The section `data` of the run's configuration; None for a run without one, such as that of examples/fit.py.

    Raises ConfigError if it has none and there are no files to score.
    """
    path = RunFolder(run).config
    if path.exists():
        return load_recorded(path).data
    if not has_files:
        raise ConfigError(
            f"{run} has no {path.name}, which would name a test set. To score translations of another text, give "
            "--source and --reference."
        )
    return None


def is_told(run: pathlib.Path) -> bool:
    """Whether a run was trained on text that told its model the languages of each pair by pieces."""
    folder = RunFolder(run)
    return (
        folder.config.exists()
        and bool(load_recorded(folder.config).training.start_from)
        and (folder.inference().languages.are_told)
    )


def pairs_with_text(split: Split) -> list[tuple[str, str]]:
    """Return the pairs of a split that have text on both sides; log how many others there are, and their numbers."""
    pairs = list(split)
    if split.skipped:
        first = ", ".join(f"{number:,}" for number in split.blank[:BLANK_LINES_NAMED])
        more = ", ..." if len(split.blank) > BLANK_LINES_NAMED else ""
        log.warning(
            "pairs of %s without text on one side are left out, and not counted: %s (lines %s%s)",
            split.name,
            skipped_sentence(split.skipped),
            first,
            more,
        )
    return pairs


def codes_of(split: Split) -> list[Codes]:
    """Return the languages of the pairs that have text on both sides."""
    return [codes for _, codes in split.with_codes()]


def parts_of(split: Split) -> list[str]:
    """Return the name of the part of each pair that the latest iteration of the split gave; none if it has no parts."""
    blank = frozenset(split.blank)
    return [name for number, name in enumerate(split.parts(), 1) if number not in blank]
