"""Labelled bracketing scores of trees, as EVALB computes them with its parameters COLLINS.prm.

EVALB (Sekine and Collins 1997) compares the phrases of a tree with those of the treebank's tree. A phrase is right if
there is one with the same label over the same words; of equal phrases each counts once.

    precision = right phrases / phrases of the outputs        recall = right phrases / phrases of the treebank
    F1 = 2 precision recall / (precision + recall)

over all sentences together. COLLINS.prm leaves out words with the tags , : `` '' . and then phrases without a word. It
takes PRT for ADVP, and does not count TOP. Outputs have no tags, so both trees get those of the treebank, and EVALB's
accuracy of tags, which would mean nothing, is left out. A tree is exact if all its phrases are right and none is
missing.
"""

import collections
import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_transformer.inspection.bleu import RESAMPLES, Score, Scores
from keras_transformer.parsing.linear import Constituent, closing, constituents, is_tree, opening, repaired, symbols_of

from ..data.trees import TOP, Tree

PUNCTUATION = {",", ":", "``", "''", "."}  # DELETE_LABEL, of words
UNCOUNTED = {TOP, "-NONE-", *PUNCTUATION}  # DELETE_LABEL, of phrases
EQUAL = {"PRT": "ADVP"}  # EQ_LABEL
SIGNATURE = "EVALB, COLLINS.prm"
MEASURES = "precision", "recall", "F1"


class BracketCounts(NamedTuple):
    """The phrases of one sentence, or of several together."""

    right: int
    written: int  # phrases of the output
    expected: int  # phrases of the treebank's tree


@dataclasses.dataclass(frozen=True)
class BracketingScores:
    """The scores of a set of trees, in per cent."""

    precision: Score
    recall: Score
    f1: Score
    exact: float  # of the sentences that have words which count
    well_formed: float  # of the sentences: outputs that were trees over their words before any repair
    sentences: int
    with_words: int  # sentences of more than punctuation

    @property
    def measured(self) -> tuple[Score, ...]:
        return self.f1, self.precision, self.recall

    @property
    def quality(self) -> float:
        """The number by which weights are chosen: F1."""
        return self.f1.value

    @property
    def quality_text(self) -> str:
        """The same as logs show it."""
        return f"F1 {self.f1}"

    def plotted(self) -> dict[str, float]:
        """The numbers for metrics.jsonl, by name."""
        return {
            "bracketing_f1": self.f1.value,
            "bracketing_precision": self.precision.value,
            "bracketing_recall": self.recall.value,
            "exact_trees": self.exact,
            "well_formed": self.well_formed,
        }

    def lines(self) -> list[str]:
        return [
            f"F1 {self.f1}  precision {self.precision}  recall {self.recall}  (labelled brackets, {SIGNATURE})",
            f"exact {self.exact:.2f} per cent of {self.with_words:,} trees",
            f"well-formed {self.well_formed:.2f} per cent of the raw outputs; the others were repaired before scoring",
        ]

    def as_json(self) -> dict[str, Any]:
        """What a program reads."""
        return {
            "sentences": self.sentences,
            "scores": [score.as_json() for score in self.measured],
            "exact": self.exact,
            "well_formed": self.well_formed,
        }


class ValidatedTrees(NamedTuple):
    """The scores of validated trees: of their brackets, which decide, and of the same lines taken for text."""

    brackets: BracketingScores
    text: Scores

    @property
    def measured(self) -> tuple[Score, ...]:
        return *self.brackets.measured, *self.text.measured

    @property
    def exact(self) -> float:
        """Per cent of the lines that equal their reference letter by letter."""
        return self.text.exact

    @property
    def quality(self) -> float:
        return self.brackets.quality

    @property
    def quality_text(self) -> str:
        return self.brackets.quality_text

    def plotted(self) -> dict[str, float]:
        return self.text.plotted() | self.brackets.plotted()


def bracketing_scores(trees: Sequence[Tree], outputs: Sequence[str], resamples: int = 0) -> BracketingScores:
    """Score lines of brackets, each repaired if it is no tree over the words of its sentence.

    A sentence of nothing but punctuation has no phrase that counts; EVALB skips it, and `exact` is of the others.
    resamples: of the bootstrap that finds confidence intervals; 0 for none.
    """
    well_formed = sum(is_tree(symbols_of(output), len(tree.words)) for tree, output in zip(trees, outputs, strict=True))
    values = counts_of(trees, outputs)
    has_words = np.array([words_before(tree.tags)[-1] > 0 for tree in trees])
    exact = int((values == values[:, :1]).all(1)[has_words].sum())
    whole = rates(values.sum(0))
    if resamples > 1 and len(trees) > 1:
        drawn = np.random.default_rng(1).integers(0, len(trees), (resamples, len(trees)))
        low, high = np.percentile(rates(values[drawn].sum(1)), [2.5, 97.5], axis=0)
        middles, margins = ((low + high) / 2).tolist(), ((high - low) / 2).tolist()
    else:
        middles, margins = [None] * 3, [None] * 3
    precision, recall, f1 = (
        Score(name, "labelled brackets", value, SIGNATURE, "", middle, margin)
        for name, value, middle, margin in zip(MEASURES, whole.tolist(), middles, margins, strict=True)
    )
    counted = int(has_words.sum())
    return BracketingScores(
        precision,
        recall,
        f1,
        100 * exact / max(1, counted),
        100 * well_formed / len(trees),
        len(trees),
        counted,
    )


def counts_of(trees: Sequence[Tree], outputs: Sequence[str]) -> np.ndarray:
    """The BracketCounts of each output, repaired if it is no tree over the words of its sentence: (sentences, 3)."""
    counts = [
        bracket_counts(tree, repaired(symbols_of(output), len(tree.words)))
        for tree, output in zip(trees, outputs, strict=True)
    ]
    return np.array(counts, np.float64).reshape(-1, 3)


def rates(counts: np.ndarray) -> np.ndarray:
    """Counts (..., 3) of right, written and expected phrases -> precision, recall and F1 in per cent (..., 3)."""
    right, written, expected = np.moveaxis(counts, -1, 0)
    shares = (right, written), (right, expected), (2 * right, written + expected)
    return 100 * np.stack([part / np.maximum(whole, 1) for part, whole in shares], -1)


def bracket_counts(tree: Tree, symbols: Iterable[str]) -> BracketCounts:
    """Compare a tree over the words of `tree` with it."""
    written, expected = (counted_phrases(line, tree.tags) for line in (symbols, tree.symbols))
    return BracketCounts((written & expected).total(), written.total(), expected.total())


def counted_phrases(symbols: Iterable[str], tags: Sequence[str]) -> collections.Counter[Constituent]:
    """The phrases that count, over the words that count: `start` and `end` are numbers of these words."""
    before = words_before(tags)
    phrases = (
        Constituent(EQUAL.get(label, label), before[start], before[end])
        for label, start, end in constituents(symbols)
        if label not in UNCOUNTED
    )
    return collections.Counter(phrase for phrase in phrases if phrase.start < phrase.end)


def words_before(tags: Sequence[str]) -> list[int]:
    """How many words that count stand before each word, and how many there are."""
    return [0, *itertools.accumulate(tag not in PUNCTUATION for tag in tags)]


class RightBranching(NamedTuple):
    """The parser that takes every sentence for a chain to the right: (root a (inner b (inner c d))).

    Each phrase but the root begins one word later than the phrase around it, and both end together. Punctuation does
    not count, and opens no phrase.
    """

    root: str
    inner: str

    @classmethod
    def of(cls, trees: Sequence[Tree]) -> "RightBranching":
        """Take the labels from training trees.

        root: the most frequent label of roots. inner: the most frequent label of those other phrases of two and more
        words that end with the last word of their sentence.
        """
        roots = collections.Counter(tree.symbols[0][1:] for tree in trees)
        inner = collections.Counter()
        for tree in trees:
            last = words_before(tree.tags)[-1]
            for phrase, count in counted_phrases(tree.symbols, tree.tags).items():
                if 0 < phrase.start < phrase.end - 1 and phrase.end == last:
                    inner[phrase.label] += count
        return cls(*(labels.most_common(1)[0][0] if labels else "S" for labels in (roots, inner)))

    def __call__(self, tree: Tree) -> list[str]:
        """The symbols of the chain over the words of `tree`."""
        before = words_before(tree.tags)
        symbols, chain = [opening(self.root)], 0
        for number, tag in enumerate(tree.tags):
            if tag not in PUNCTUATION and 0 < before[number] < before[-1] - 1:
                symbols.append(opening(self.inner))
                chain += 1
            symbols.append("XX")
            if before[number + 1] == before[-1]:  # the last word that counts, and punctuation after it
                symbols += [closing(self.inner)] * chain
                chain = 0
        return [*symbols, closing(self.root)]

    def scores(self, trees: Sequence[Tree]) -> BracketingScores:
        return bracketing_scores(trees, [" ".join(self(tree)) for tree in trees], RESAMPLES)
