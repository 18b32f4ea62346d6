"""Translations that are scored: of a run's own test set, or of the lines of two files."""

import dataclasses
import logging
import pathlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from keras_transformer.bleu import Scores, tokenised_bleu
from keras_transformer.config import ConfigError
from keras_transformer.run_folder import RunFolder
from keras_transformer.samples import Sample
from keras_transformer.tokenizer import Tokenizer

from ..config.data import DataSection
from ..config.recorded import load_recorded
from ..data.corpus import WHOLE_TEXT, CorpusError, Split, skipped_sentence
from ..data.files import aligned_pairs, lines_of
from ..data.prepare import PreparedData, load_test_split
from ..data.statistics import own_part
from .breakdown import training_splits
from .card import OutputScores, TimedTranslations
from .scorecard import Scorecard, evaluator_of
from .scored import Opponent, Scored, Use
from .significance import DEFAULT_TEST

log = logging.getLogger("train")


@dataclasses.dataclass(frozen=True)
class ScoredText(Scored):
    """Sentences and their reference translations.

    language: of the translations. training: returns the training text, called `training_name`, whose words are counted.
    is_tokenised: whether BLEU by length is of Moses-tokenised, lower-cased text.
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

    @classmethod
    def of_run(
        cls,
        data: DataSection | None,
        output: pathlib.Path | None,
        files: tuple[pathlib.Path, pathlib.Path] | None = None,
        is_tokenised: bool = False,
    ) -> Self:
        name, pairs = ("{} and {}".format(*files), aligned_pairs(*files)) if files else pairs_of_test_set(data, output)
        language = data.target_language if data else ""
        return cls(name, pairs, language, lambda: training_splits(data), is_tokenised=is_tokenised)

    @classmethod
    def of_split(cls, split: Split, config: DataSection, data: PreparedData) -> Self:
        own_text = data.corpus.train.shards[: len(data.train.shards)]  # of the chief, which has the first shards
        return cls(split.name, list(split), config.target_language, lambda: own_text, own_part(data) or WHOLE_TEXT)

    @classmethod
    def validation(cls, split: Split, count: int) -> Callable[[Scores, Sequence[Sample]], OutputScores]:
        return lambda scores, samples: scores

    @staticmethod
    def settings(is_constrained: bool) -> dict[str, Any]:
        return {}

    def read(self, path: pathlib.Path) -> list[str]:
        lines = list(lines_of(path))
        if len(lines) != len(self.pairs):
            raise CorpusError(
                f"--against {path} has {len(lines):,} lines, but there are {len(self.pairs):,} sentences: give the "
                "file one translation per line, in the order of the sentences."
            )
        return lines

    def written(self, outputs: Sequence[str]) -> Sequence[str]:
        return outputs

    def score(
        self,
        timed: TimedTranslations,
        tokenizer: Tokenizer,
        opponent: Opponent | None = None,
        paired_test: str = DEFAULT_TEST,
    ) -> Scorecard:
        tokenizers = [tokenizer, *([opponent.tokenizer] if opponent and opponent.tokenizer else [])]
        evaluator = evaluator_of(tokenizers, self.language, self.training, timed.samples, self.training_name)
        if self.is_tokenised:
            evaluator = dataclasses.replace(evaluator, length_bleu=tokenised_bleu(self.language))
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


def pairs_of_test_set(data: DataSection, output: pathlib.Path | None) -> tuple[str, list[tuple[str, str]]]:
    """Name and pairs of the test set, or of the validation set if there is none. Needs no training text.

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
    return split.name, pairs
