"""Two translations of a line agree if only rounding separates their scores."""

import contextlib

import pytest

from export.certificate.agreement import TIES, ScoreComparison, agreement
from export.versions import ExportError
from keras_transformer.pieces.translation import Translation


def fixed(*answers):
    return [Translation(*answer) for answer in answers]


@pytest.mark.parametrize(
    ("exported", "expected", "same", "ties", "different"),
    [
        (("x", -1.0), ("x", -1.0), 1, 0, 0),
        (("x", -1.0), ("x", -1.00005), 1, 0, 0),
        (("x", -1.0), ("y", -1.00005), 0, 1, 0),
        (("x", -1.0), ("x", -1.0002), 0, 0, 1),
        (("x", -1.0), ("y", -1.0002), 0, 0, 1),
        (("x", -30.0), ("x", -30.0029), 1, 0, 0),
        (("x", -30.0), ("x", -30.0031), 0, 0, 1),
        (("x", -0.1), ("x", -0.10005), 1, 0, 0),
        (("x", float("nan")), ("x", -1.0), 0, 0, 1),
        (("x", -1.0), ("x", float("-inf")), 0, 0, 1),
        (("", 0.0), ("x", -3.0), 0, 0, 1),
    ],
)
def test_only_rounding_is_forgiven(exported, expected, same, ties, different):
    found = agreement(fixed(exported), fixed(expected), ["line"])
    assert (found.same, found.ties, len(found.disagreements)) == (same, ties, different)


@pytest.mark.parametrize(("difference", "is_tie"), [(0.25, True), (0.5, False), (0.75, False)])
def test_a_difference_of_the_whole_tie_is_one(difference, is_tie):
    found = agreement(fixed(("x", -1.0 + difference)), fixed(("y", -1.0)), ["line"], tie=0.5)
    assert (found.ties, len(found.disagreements)) == (is_tie, not is_tie)
    comparison = ScoreComparison(1, difference, "line", -1.0)
    with (
        contextlib.nullcontext()
        if is_tie
        else pytest.raises(ExportError, match=f"by {difference:.6f} of -1.00 in 'line'")
    ):
        comparison.refuse_beyond(0.5)


def test_scores_in_bfloat16_may_differ_by_a_thousand_times_as_much_which_nobody_gets_who_does_not_ask():
    assert TIES == {"float32": 1e-4, "bfloat16": 0.1}
    assert agreement(fixed(("x", -1.0)), fixed(("x", -1.01)), ["line"]).disagreements
    with pytest.raises(ExportError):
        ScoreComparison(1, 2e-4, "line", -0.5).refuse_beyond()


def test_a_disagreement_names_its_line_and_both_translations():
    found = agreement(fixed(("x", -1), ("y", -2)), fixed(("x", -1), ("z", -3)), ["one", "two"])
    assert str(found.disagreements[0]) == (
        "line 2, 'two': 'y' with score -2.000000 from the export, 'z' with score -3.000000 from the Translator"
    )


def test_the_line_whose_score_is_not_a_number_differs_most():
    worst = ScoreComparison.of(["a", "b", "c"], [-1.0, float("nan"), -9.0], [-1.0, -1.0, -1.0])
    assert worst.worst_line == "b"
    with pytest.raises(ExportError, match="'b'"):
        worst.refuse_beyond()
    assert ScoreComparison.of(["a", "b"], [-1.0, -2.0], [-1.5, -2.25])[1:] == (0.5, "a", -1.5)


@pytest.mark.parametrize(("score", "difference"), [(-0.1, 0.9e-4), (-1.0, 0.9e-4), (-12.5, 1.2e-3), (-300.0, 0.029)])
def test_a_score_may_differ_in_proportion_to_its_size(score, difference):
    """As lines of a search do: float32 rounds a logit in proportion to its size."""
    ScoreComparison.of(["line"], [score - difference], [score]).refuse_beyond()
    with pytest.raises(ExportError, match="in 'line'"):
        ScoreComparison.of(["line"], [score - 1.2 * difference], [score]).refuse_beyond()


def test_the_line_that_differs_most_in_proportion_is_named():
    worst = ScoreComparison.of(["long", "short"], [-100.005, -1.0003], [-100.0, -1.0])
    assert worst.worst_line == "short" and "at most 0.000300, of -1.00" in str(worst)
