"""Labelled bracketing scores: EVALB's own sample, its parameters one by one, and the right-branching baseline."""

import json

import numpy as np
import pytest

from tests.support.places import ROOT
from train.data.trees import Tree, read_trees
from train.scoring.brackets import BracketCounts, RightBranching, bracket_counts, bracketing_scores, rates

THIS_IS = "(S (A XX )A (B XX (A XX XX )A )B )S"
# The sentences of sample.gld and sample.tst in EVALB's distribution that have a tree over the same words, and what its
# sample.rsl says of them: phrases that match, those of the gold tree, those of the test tree.
SAMPLE = {
    1: ("(S (A XX )A (B XX (A XX XX )A )B )S", 4, 4, 4),
    2: ("(S (A XX )A (B XX (C XX XX )C )B )S", 3, 4, 4),
    4: ("(S (C XX )C (B XX (A XX XX )A )B )S", 3, 4, 4),
    5: ("(S (A XX )A (B XX XX (A XX )A )B )S", 3, 4, 4),
    6: ("(S (A XX XX )A (A XX XX )A )S", 2, 4, 3),
    7: ("(S XX XX XX XX )S", 1, 4, 1),
    8: ("(TOP XX XX XX XX )TOP", 0, 4, 0),  # there without any bracket
    9: ("(S (A XX )A (B XX (A (A XX XX )A )A )B )S", 4, 4, 5),
    10: ("(S (A XX )A (B XX (A (A (A (A (A XX XX )A )A )A )A )A )B )S", 4, 4, 8),
    15: ("(TOP (S (A XX )A (B XX (A XX XX )A )B )S )TOP", 4, 4, 4),
}


def tree(symbols, tags=None):
    symbols = symbols.split()
    tags = tags.split() if tags else ["NN"] * symbols.count("XX")
    return Tree(("word",) * len(tags), tuple(tags), tuple(symbols))


def counts(gold, output, tags=None):
    return bracket_counts(tree(gold, tags), output.split())


@pytest.mark.parametrize("number", SAMPLE)
def test_the_sample_of_evalb(number):
    output, right, expected, found = SAMPLE[number]
    assert counts(THIS_IS, output) == BracketCounts(right, found, expected)


def test_the_summary_of_these_sentences():
    trees, outputs = [tree(THIS_IS)] * len(SAMPLE), [output for output, *_ in SAMPLE.values()]
    scores = bracketing_scores(trees, outputs)
    right, expected, found = (sum(row[column] for row in SAMPLE.values()) for column in (1, 2, 3))
    assert scores.precision.value == pytest.approx(100 * right / found)
    assert scores.recall.value == pytest.approx(100 * right / expected)
    assert scores.f1.value == pytest.approx(200 * right / (found + expected))
    assert (scores.exact, scores.well_formed, scores.sentences) == (20.0, 100.0, 10)


def test_a_sentence_of_punctuation_alone_is_neither_exact_nor_not():
    """EVALB deletes all of its words and skips it."""
    trees = [tree("(FRAG XX )FRAG", ":"), tree(THIS_IS)]
    assert bracketing_scores(trees, ["(S XX )S", "(S XX XX XX XX )S"]).exact == 0.0
    right = bracketing_scores(trees, ["(S XX )S", THIS_IS])
    assert right.exact == 100.0 and "exact 100.00 per cent of 1 trees" in right.lines()
    assert bracketing_scores(trees[:1], ["(FRAG XX )FRAG"]).exact == 0.0


def test_a_repeated_phrase_is_right_as_often_as_it_is_expected():
    assert counts("(S (A (A XX )A )A XX )S", "(S (A (A (A XX )A )A )A XX )S") == (3, 4, 3)


def test_words_that_are_punctuation_do_not_count_and_neither_do_phrases_of_them():
    gold = "(S (A XX XX )A (B XX )B XX )S"
    assert counts(gold, "(S (A XX )A XX (B XX XX )B )S", "NN , NN .") == (3, 3, 3)
    assert counts(gold, "(S (A XX )A XX (B XX XX )B )S") == (1, 3, 3)
    assert counts(gold, "(S (A XX )A (C XX )C (B XX )B (C XX )C )S", "NN : NN ''") == (3, 3, 3)
    assert counts("(S XX )S", "(S XX )S", "``") == (0, 0, 0)
    for tag in ("$", "#", "-LRB-", "-RRB-", "CC", "POS"):
        assert counts(gold, gold, f"{tag} {tag} {tag} .") == (3, 3, 3)
        assert counts("(S (A XX )A XX )S", "(S (A XX XX )A )S", f"NN {tag}") == (1, 2, 2)


def test_prt_is_advp_and_top_does_not_count():
    assert counts("(S (PRT XX )PRT XX )S", "(S (ADVP XX )ADVP XX )S") == (2, 2, 2)
    assert counts("(TOP (S XX )S XX )TOP", "(S (S XX )S XX )S") == (1, 2, 1)


def test_an_output_that_is_no_tree_is_repaired_and_counted():
    trees = [tree("(S (A XX )A XX )S")] * 4
    scores = bracketing_scores(trees, ["(S (A XX )A XX )S", "(S (A XX )A", "", "(S (A XX )A XX XX )S"])
    assert scores.well_formed == 25.0 and scores.exact == 75.0
    assert scores.precision.value == 100.0 and scores.recall.value == pytest.approx(100 * 7 / 8)


def test_nothing_right_is_0_and_no_error():
    assert rates(np.array([0.0, 0.0, 3.0])).tolist() == [0.0, 0.0, 0.0]


def test_the_interval_of_f1_is_a_bootstrap_over_sentences():
    trees = [tree("(S (A XX )A XX )S")] * 100
    right, wrong = "(S (A XX )A XX )S", "(B (C XX )C XX )B"
    scores = bracketing_scores(trees, [right, wrong] * 50, resamples=1_000)
    assert scores.f1.value == 50.0 and scores.f1.mean == pytest.approx(50.0, abs=1.0)
    assert scores.f1.margin == pytest.approx(1.96 * 5.0, abs=1.0)  # of 100 throws of a coin
    assert bracketing_scores(trees, [right] * 100, resamples=100).f1.margin == 0.0
    for interval_of_nothing in ((trees[:1], [right], 100), (trees, [right] * 100, 1)):
        assert bracketing_scores(*interval_of_nothing).f1.margin is None


def test_the_numbers_of_pyevalb():
    """Counts and sums that an independent implementation gives for the same trees (tests/support/pyevalb.json)."""
    record = json.loads((ROOT / "tests/support/pyevalb.json").read_text(encoding="utf-8"))
    for gold, output, *expected in record["counts"]:
        assert list(counts(gold, output)) == expected, (gold, output)
    assert len(record["counts"]) >= 200


# the right-branching baseline

FLIES = "(S (NP (NN time)) (VP (VBZ flies) (PP (IN like) (NP (DT an) (NN arrow)))) (. .))"


def trees_of(text):
    return list(read_trees(text, "text"))


def test_right_branching_takes_its_labels_from_the_phrases_that_end_their_sentences():
    trees = trees_of(FLIES * 2 + "(SQ (VBZ is) (NP (PRP it)) (PP (IN in) (NP (NN time))) (. ?))" + "(FRAG (NN time))")
    assert RightBranching.of(trees) == ("S", "PP")  # PP: thrice; VP and NP: twice
    assert RightBranching.of([tree("(FRAG XX )FRAG")]) == ("FRAG", "S")


def test_a_right_branching_tree_is_a_chain_over_the_words_that_count():
    parser = RightBranching("S", "VP")
    (flies,) = trees_of(FLIES)
    assert " ".join(parser(flies)) == "(S XX (VP XX (VP XX (VP XX XX )VP )VP )VP XX )S"
    assert bracket_counts(flies, parser(flies)) == (2, 4, 5)  # S and the VP
    comma = tree("(S XX XX XX XX XX )S", "NN , NN NN ''")
    assert " ".join(parser(comma)) == "(S XX XX (VP XX XX )VP XX )S"
    for tags in ("NN", "NN .", ".", ". , .", "NN NN", "`` NN NN ''"):
        single = tree("(S " + "XX " * len(tags.split()) + ")S", tags)
        assert " ".join(parser(single)) == " ".join(single.symbols)
