"""Two parsers on the same sentences: the paired test of their F1 against all exchanges, and what is printed."""

import itertools

import numpy as np
import pytest

from train.data.trees import read_trees
from train.scoring.brackets import counts_of, rates
from train.scoring.significance import DRAWN, PAIRED_TESTS
from train.scoring.tree_comparison import bracket_differences, compare_trees, largest_tree_differences, resampled

SACREBLEU_SEED = 12345  # unless the environment has another one, by its documentation
GOLD, FLAT = "(S (NP XX XX )NP (VP XX )VP XX )S", "(S XX XX XX XX )S"
TREES = list(
    read_trees("( (S (NP (DT the) (NNS dogs)) (VP (VBP bark)) (. .)) )\n" * 9, "text")
)  # each has three phrases, of which the flat tree has one


def random_counts(seed, sentences):
    """Counts of right, found and expected phrases of two parsers."""
    generator = np.random.default_rng(seed)
    expected = generator.integers(3, 9, sentences)
    parsers = []
    for _ in range(2):
        found = generator.integers(3, 9, sentences)
        right = generator.integers(0, np.minimum(found, expected) + 1)
        parsers.append(np.stack([right, found, expected], 1).astype(float))
    return parsers


@pytest.mark.parametrize("seed", range(4))
def test_randomization_is_the_share_of_all_exchanges_with_a_difference_as_large(seed):
    ours, theirs = random_counts(seed, 8)
    observed = rates(ours.sum(0)) - rates(theirs.sum(0))
    every = []
    for exchange in itertools.product([False, True], repeat=len(ours)):
        one = np.where(np.array(exchange)[:, np.newaxis], theirs, ours)
        other = np.where(np.array(exchange)[:, np.newaxis], ours, theirs)
        every.append(rates(one.sum(0)) - rates(other.sum(0)))
    precision, recall, f1 = (np.abs(every) >= np.abs(observed) - 1e-9).mean(0)
    found = [one.p_value for one in bracket_differences(ours, theirs, "randomization")]
    assert found == pytest.approx([f1, precision, recall], abs=0.02)


def test_the_bootstrap_of_counts_is_that_of_drawn_sentences():
    ours, theirs = random_counts(5, 30)
    drawn = np.random.default_rng(1).integers(0, 30, (20_000, 30))
    found = rates(ours[drawn].sum(1)) - rates(theirs[drawn].sum(1))
    observed = rates(ours.sum(0)) - rates(theirs.sum(0))
    precision, recall, f1 = (np.abs(found - found.mean(0)) >= np.abs(observed)).mean(0)
    p_values = [one.p_value for one in bracket_differences(ours, theirs, "bootstrap")]
    assert p_values == pytest.approx([f1, precision, recall], abs=0.05)


@pytest.mark.parametrize("paired_test", ["bootstrap", "randomization"])
def test_equal_parsers_do_not_differ_and_clear_differences_are_seen(paired_test):
    ours, theirs = random_counts(3, 40)
    assert [one.p_value for one in bracket_differences(ours, ours, paired_test)] == [1.0] * 3
    better = np.stack([theirs[:, 2], theirs[:, 2], theirs[:, 2]], 1)
    f1 = bracket_differences(better, theirs, paired_test)[0]
    assert f1.ours == 100.0 and f1.p_value == 1 / (PAIRED_TESTS[paired_test].resamples + 1)  # no resample is as large
    mirrored = bracket_differences(theirs, better, paired_test)[0]
    assert (mirrored.ours, mirrored.theirs) == (f1.theirs, f1.ours) and mirrored.p_value < 0.01


def test_a_bootstrap_is_drawn_around_the_difference_and_exchanges_around_none():
    ours, theirs = random_counts(5, 200)
    better = np.stack([ours[:, 2], ours[:, 2], ours[:, 2]], 1)
    observed = 100.0 - rates(theirs.sum(0))
    for paired_test, centre in (("bootstrap", observed), ("randomization", 0 * observed)):
        drawn = resampled(np.random.default_rng(1), better, theirs, 2_000, paired_test)
        np.testing.assert_allclose(drawn.mean(0), centre, atol=2.0)
    assert observed.min() > 20


@pytest.mark.parametrize("paired_test", ["bootstrap", "randomization"])
def test_the_same_trees_have_the_same_p_values_drawn_from_the_seed_that_is_printed(paired_test):
    """So that a number in a report can be made again."""
    ours, theirs = random_counts(5, 30)
    found, again = (bracket_differences(ours, theirs, paired_test) for _ in range(2))
    assert found == again and 0.001 < found[0].p_value < 1
    assert {DRAWN.search(one.signature)[0].rpartition(" ")[2] for one in found} == {str(SACREBLEU_SEED)}


@pytest.mark.parametrize("paired_test", ["bootstrap", "randomization"])
def test_one_tree_is_never_significant(paired_test):
    ours, theirs = np.array([[9.0, 9, 9]]), np.array([[1.0, 9, 9]])
    assert [one.p_value for one in bracket_differences(ours, theirs, paired_test)] == [1.0] * 3
    same = np.array([[5.0, 9, 9]])
    f1 = bracket_differences(np.concatenate([ours, same]), np.concatenate([theirs, same]), paired_test)[0]
    assert f1.p_value == 1.0


def test_the_trees_that_differ_most_are_shown_with_the_treebanks():
    ours, theirs = [GOLD] * 9, [GOLD] * 7 + [FLAT, ""]
    found = compare_trees("other", TREES, ours, theirs)
    assert [one.line for one in found.lines] == [8, 9] and found.differences[0].name == "F1"
    first = found.lines[0]
    assert first.reference == first.ours == "(S (NP (DT the) (NNS dogs)) (VP (VBP bark)) (. .))"
    assert first.theirs == "(S (DT the) (NNS dogs) (VBP bark) (. .))"
    assert (first.our_f1, first.their_f1) == (100.0, pytest.approx(50.0))
    assert found.differences[0].ours == rates(counts_of(TREES, ours).sum(0))[2] == 100.0
    printed = "\n".join([*found.table().lines(), *found.sentences()])
    assert (
        "Against other, with a paired randomization test" in printed and "tree 8" in printed and first.theirs in printed
    )
    assert compare_trees("other", TREES, ours, ours).sentences() == ["No two trees differ in sentence F1."]


def test_of_many_trees_that_differ_the_first_ten_are_shown():
    found = compare_trees("other", TREES * 2, [GOLD] * 18, [FLAT] * 18)
    assert [one.line for one in found.lines] == list(range(1, 11))
    counts = counts_of(TREES, [GOLD] * 9), counts_of(TREES, [FLAT] * 9)
    first, second, *_ = largest_tree_differences(TREES, [GOLD] * 9, [FLAT] * 9, *counts)
    assert (first.line, second.line) == (1, 2)
    assert first.printed() == [
        "  tree 1",
        "    treebank        (S (NP (DT the) (NNS dogs)) (VP (VBP bark)) (. .))",
        "    this   F1 100.0 (S (NP (DT the) (NNS dogs)) (VP (VBP bark)) (. .))",
        "    other  F1  50.0 (S (DT the) (NNS dogs) (VBP bark) (. .))",
    ]


@pytest.mark.parametrize("paired_test", ["bootstrap", "randomization"])
def test_trees_are_compared_by_the_test_that_is_asked_for(paired_test):
    ours, theirs = [GOLD] * 9, [GOLD] * 7 + [FLAT, ""]
    found = compare_trees("other", TREES, ours, theirs, paired_test)
    assert found.differences == bracket_differences(counts_of(TREES, ours), counts_of(TREES, theirs), paired_test)
