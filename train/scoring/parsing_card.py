"""The statistics of trees: scores of their brackets, by length, and beside a parser that looks at no word."""

import bisect
import collections
import dataclasses
from collections.abc import Sequence
from typing import Any

from keras_transformer.inspection.bleu import RESAMPLES

from ..data.trees import Tree
from .brackets import BracketingScores, RightBranching, bracketing_scores
from .breakdown import LENGTHS, label
from .card import Card, TimedTranslations
from .tables import Table

PAPER = (  # Vaswani et al. 2017, table 4: F1 on section 23, and the sentences that were trained on
    ("Vaswani et al. 2017, Wall Street Journal only", 91.3, "about 40,000"),
    ("Vaswani et al. 2017, semi-supervised", 92.7, "about 17,000,000"),
)


@dataclasses.dataclass(frozen=True)
class ParsingCard(Card):
    """The statistics of one set of trees, beside those of a parser that looks at no word."""

    scores: BracketingScores
    baseline: BracketingScores
    parser: RightBranching  # which has these scores
    by_length: dict[str, BracketingScores]  # from the words of a sentence, as printed: "6 to 10"
    training_sentences: int

    def tables(self) -> list[Table]:
        """This run beside the baseline and the paper, whose data were others; then its scores by length."""
        heads = ("", "F1", "precision", "recall", "exact %", "trained on")
        chain = f"right-branching: {self.parser.root} over a chain of {self.parser.inner}"
        rows = [
            (name, str(scores.f1), str(scores.precision), str(scores.recall), f"{scores.exact:.2f}", trained_on)
            for name, scores, trained_on in (
                ("this run", self.scores, f"{self.training_sentences:,}"),
                (chain, self.baseline, "its labels alone"),
            )
        ]
        rows += [(name, f"{f1:.1f}", "", "", "", sentences) for name, f1, sentences in PAPER]
        context = Table("Beside a parser that looks at no word, and the paper's on section 23", heads, rows)
        lengths = [
            (words, f"{scores.sentences:,}", str(scores.f1), f"{scores.exact:.1f}", f"{scores.well_formed:.1f}")
            for words, scores in self.by_length.items()
        ]
        return [context, Table("By words", ("words", "trees", "F1", "exact %", "well-formed %"), lengths)]

    def details(self) -> dict[str, Any]:
        return {
            "training_sentences": self.training_sentences,
            "right_branching": {**self.parser._asdict(), **self.baseline.as_json()},
            "by_length": {words: scores.as_json() for words, scores in self.by_length.items()},
        }


def parsing_card(timed: TimedTranslations, trees: Sequence[Tree], training_trees: Sequence[Tree]) -> ParsingCard:
    """Score the translations of the sentences of `trees`; the baseline's labels are those of the training trees."""
    outputs = [sample.translation for sample in timed.samples]
    parser = RightBranching.of(training_trees)
    bins = collections.defaultdict(list)
    for tree, output in zip(trees, outputs, strict=True):
        bins[bisect.bisect_left(LENGTHS, len(tree.words))].append((tree, output))
    by_length = {label(LENGTHS, place): zip(*bins[place], strict=True) for place in sorted(bins)}
    return ParsingCard(
        timed,
        bracketing_scores(trees, outputs, RESAMPLES),
        parser.scores(trees),
        parser,
        {words: bracketing_scores(their_trees, lines) for words, (their_trees, lines) in by_length.items()},
        len(training_trees),
    )
