"""Is one parser better than another? Paired tests of bracketing scores, and the sentences that differ most."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_transformer.parsing.linear import penn_tree, repaired, symbols_of

from ..data.trees import Tree
from .brackets import MEASURES, SIGNATURE, counts_of, rates
from .significance import DEFAULT_TEST, MOST_SHOWN, PAIRED_TESTS, Comparison, Difference, least_p_value

SEED = 12345  # sacreBLEU's
AT_ONCE = 1_000  # resamples that are in memory together


class TreeDifference(NamedTuple):
    """A sentence with two trees that differ."""

    line: int  # counted from 1
    reference: str  # in the Penn format, as the two below
    ours: str
    theirs: str
    our_f1: float  # of this sentence alone, per cent
    their_f1: float

    def printed(self) -> list[str]:
        """The lines that a person reads."""
        return [
            f"  tree {self.line}",
            f"    treebank        {self.reference}",
            f"    this   F1 {self.our_f1:5.1f} {self.ours}",
            f"    other  F1 {self.their_f1:5.1f} {self.theirs}",
        ]


class TreeComparison(Comparison):
    """Other trees over the same sentences, and how they differ; `lines` are TreeDifferences."""

    noun = "trees"
    measure = "sentence F1"


def compare_trees(
    name: str, trees: Sequence[Tree], ours: Sequence[str], theirs: Sequence[str], paired_test: str = DEFAULT_TEST
) -> TreeComparison:
    """Compare two sets of outputs, lines of brackets, for the sentences of `trees`; `theirs` is called `name`."""
    counts = counts_of(trees, ours), counts_of(trees, theirs)
    differing = largest_tree_differences(trees, ours, theirs, *counts)
    return TreeComparison(name, paired_test, bracket_differences(*counts, paired_test), differing)


def bracket_differences(ours: np.ndarray, theirs: np.ndarray, paired_test: str) -> list[Difference]:
    """F1, precision and recall of two parsers, each with the p-value of a two-sided paired test.

    ours, theirs: counts (sentences, 3) of right, written and expected phrases. The p-value is the probability of a
    difference at least this large between two equally good parsers: "bootstrap" draws sentences with replacement and
    centres the differences (Koehn 2004), "randomization" exchanges the two outputs of each sentence by a fair coin
    (Riezler and Maxwell 2005). No difference has a p-value of 1, and k sentences that differ one of at least 2^(1 - k).
    """
    observed = rates(ours.sum(0)) - rates(theirs.sum(0))
    resamples = PAIRED_TESTS[paired_test].resamples
    generator = np.random.default_rng(SEED)
    parts = [
        resampled(generator, ours, theirs, min(AT_ONCE, resamples - start), paired_test)
        for start in range(0, resamples, AT_ONCE)
    ]
    drawn = np.concatenate(parts)
    if paired_test == "bootstrap":
        drawn -= drawn.mean(0)
    at_least = (np.abs(drawn) >= np.abs(observed) - 1e-9).sum(0)
    least = least_p_value(max(1, int((ours != theirs).any(1).sum())))
    p_values = np.where(observed == 0, 1.0, np.maximum((at_least + 1) / (resamples + 1), least)).tolist()
    signature = f"{SIGNATURE}; {paired_test}, {resamples:,} resamples, seed {SEED}"
    both = zip(MEASURES, rates(ours.sum(0)).tolist(), rates(theirs.sum(0)).tolist(), p_values, strict=True)
    precision, recall, f1 = (
        Difference(name, "labelled brackets", our_rate, their_rate, p_value, signature)
        for name, our_rate, their_rate, p_value in both
    )
    return [f1, precision, recall]


def resampled(
    generator: np.random.Generator, ours: np.ndarray, theirs: np.ndarray, count: int, paired_test: str
) -> np.ndarray:
    """Return the differences (count, 3) of precision, recall and F1 in so many resamples."""
    sentences = len(ours)
    if paired_test == "bootstrap":
        times = generator.multinomial(sentences, np.full(sentences, 1 / sentences), count)
        return rates(times @ ours) - rates(times @ theirs)
    exchanged = generator.integers(0, 2, (count, sentences)) @ (theirs - ours)
    return rates(ours.sum(0) + exchanged) - rates(theirs.sum(0) - exchanged)


def largest_tree_differences(
    trees: Sequence[Tree],
    ours: Sequence[str],
    theirs: Sequence[str],
    our_counts: np.ndarray,
    their_counts: np.ndarray,
) -> list[TreeDifference]:
    """Return the MOST_SHOWN sentences whose two trees differ most in F1, the largest difference first."""
    our_f1, their_f1 = rates(our_counts)[:, 2], rates(their_counts)[:, 2]
    order = np.argsort(-np.abs(our_f1 - their_f1), kind="stable")[:MOST_SHOWN]

    def written(tree: Tree, output: str) -> str:
        return penn_tree(repaired(symbols_of(output), len(tree.words)), tree.words, tree.tags)

    return [
        TreeDifference(
            int(place) + 1,
            penn_tree(trees[place].symbols, trees[place].words, trees[place].tags),
            written(trees[place], ours[place]),
            written(trees[place], theirs[place]),
            float(our_f1[place]),
            float(their_f1[place]),
        )
        for place in order
        if our_f1[place] != their_f1[place]
    ]
