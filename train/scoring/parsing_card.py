"""All statistics of the trees that a run writes: what `keras-transformer evaluate` prints, and what report.md has."""

import bisect
import collections
import dataclasses
from collections.abc import Sequence
from typing import Any

from keras_transformer.bleu import RESAMPLES
from keras_transformer.parsing.linear import penn_tree, repaired, symbols_of

from ..data.trees import Tree
from .brackets import BracketingScores, RightBranching, bracketing_scores
from .breakdown import LENGTHS, label
from .scorecard import Timed
from .tables import INTERVAL_NOTE, Table
from .tree_comparison import TreeComparison

PAPER = (  # Vaswani et al. 2017, table 4: F1 on section 23, and the sentences that were trained on
    ("Vaswani et al. 2017, Wall Street Journal only", 91.3, "about 40,000"),
    ("Vaswani et al. 2017, semi-supervised", 92.7, "about 17,000,000"),
)


@dataclasses.dataclass(frozen=True)
class ParsingCard:
    """The scores of one set of trees, beside those of a parser that looks at no word."""

    timed: Timed
    scores: BracketingScores
    baseline: BracketingScores
    parser: RightBranching  # which has these scores
    by_length: dict[str, BracketingScores]  # from the words of a sentence, as printed: "6 to 10"
    training_sentences: int
    comparison: TreeComparison | None = None  # with other trees

    def lines(self) -> list[str]:
        """What a person reads."""
        lines = self.score_lines()
        for table in self.tables():
            lines += ["", *table.lines()]
        if self.comparison:
            lines += ["", *self.comparison.table().lines(), "", *self.comparison.sentences()]
        return lines

    def score_lines(self) -> list[str]:
        has_interval = self.scores.f1.margin is not None
        return [*self.scores.lines(), *[INTERVAL_NOTE] * has_interval, self.timed.line()]

    def tables(self) -> list[Table]:
        """This run beside the baseline and the paper, which had other data; and its scores by length."""
        heads = ("", "F1", "precision", "recall", "exact %", "trained on")
        chain = f"right-branching: {self.parser.root} over a chain of {self.parser.inner}"
        rows = [
            (name, str(found.f1), str(found.precision), str(found.recall), f"{found.exact:.2f}", trained_on)
            for name, found, trained_on in (
                ("this run", self.scores, f"{self.training_sentences:,}"),
                (chain, self.baseline, "its labels alone"),
            )
        ]
        rows += [(name, f"{f1:.1f}", "", "", "", sentences) for name, f1, sentences in PAPER]
        context = Table("Beside a parser that looks at no word, and the paper's on section 23", heads, rows)
        lengths = [
            (words, f"{found.sentences:,}", str(found.f1), f"{found.exact:.1f}", f"{found.well_formed:.1f}")
            for words, found in self.by_length.items()
        ]
        return [context, Table("By words", ("words", "trees", "F1", "exact %", "well-formed %"), lengths)]

    def as_json(self) -> dict[str, Any]:
        """What a program reads."""
        return {
            **json_of(self.scores),
            "seconds": self.timed.seconds,
            "sentences_per_second": self.timed.rate,
            "training_sentences": self.training_sentences,
            "right_branching": {**self.parser._asdict(), **json_of(self.baseline)},
            "by_length": {words: json_of(found) for words, found in self.by_length.items()},
            "against": self.comparison.as_json() if self.comparison else None,
        }


def json_of(scores: BracketingScores) -> dict[str, Any]:
    return {
        "sentences": scores.sentences,
        "scores": [found.as_json() for found in scores.measured],
        "exact": scores.exact,
        "well_formed": scores.well_formed,
    }


def parsing_card(timed: Timed, trees: Sequence[Tree], training_trees: Sequence[Tree]) -> ParsingCard:
    """Score the translations of the sentences of `trees`; the baseline's labels are those of the training trees."""
    outputs = [sample.translation for sample in timed.samples]
    parser = RightBranching.of(training_trees)
    bins = collections.defaultdict(list)
    for tree, output in zip(trees, outputs, strict=True):
        bins[bisect.bisect_left(LENGTHS, len(tree.words))].append((tree, output))
    return ParsingCard(
        timed,
        bracketing_scores(trees, outputs, RESAMPLES),
        parser.scores(trees),
        parser,
        {label(LENGTHS, place): bracketing_scores(*zip(*bins[place], strict=True)) for place in sorted(bins)},
        len(training_trees),
    )


def tagged_trees(trees: Sequence[Tree], outputs: Sequence[str]) -> list[str]:
    """The outputs as trees of the Penn format, repaired, with the words and the tags of `trees`: what EVALB reads."""
    return [
        penn_tree(repaired(symbols_of(output), len(tree.words)), tree.words, tree.tags)
        for tree, output in zip(trees, outputs, strict=True)
    ]
