"""What a soak takes for a fault, and what its page says."""

import pytest

from benchmarks.speed.soak_questions import verdict
from benchmarks.speed.soak_table import as_markdown, faults, summary

GOOD = {
    "minutes": 1.0, "clients": 4, "reload_seconds": 20.0, "seconds": 60.0, "sentences": 2, "command": "soak",
    "behaviours": ["ask", "ask", "die", "ask_slowly"],
    "memory": [(0.0, 100 << 20), (30.0, 300 << 20), (60.0, 200 << 20)],
    "versions": [{"number": 2, "is_bad": False, "at": 20.0}, {"number": 3, "is_bad": True, "at": 40.0}],
    "newest": 2, "served": [2], "code": 0, "died": [7], "ties": [], "wrong": [], "refused": [], "unannounced": [],
    "errors": [], "answers": [("plain", 1.0, 0.010), ("plain", 2.0, 0.030), ("gRPC", 58.0, 0.500)],
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"ties": ["plain: ..."], "refused": ["no room"]}, []),  # announced, or as good
        ({"wrong": ["plain: a", "plain: b"]}, ["2 wrong, the first: plain: a"]),
        ({"unannounced": ["plain: 500 None"]}, ["1 unannounced, the first: plain: 500 None"]),
        ({"errors": ["slow: OSError"]}, ["1 errors, the first: slow: OSError"]),
        ({"served": [1]}, ["at the end [1] was served, not 2"]),
        ({"served": [2, 3]}, ["at the end [2, 3] was served, not 2"]),
        ({"code": -11}, ["the server ended with -11"]),
    ],
)
def test_a_fault_is_a_wrong_answer_an_error_another_version_or_another_end(changes, expected):
    assert faults(GOOD | changes) == expected
    page = as_markdown(summary(GOOD | changes))
    assert f"Faults: {'; '.join(expected) or 'none'}." in page


KNOWN = {"translation": ["ein Hund"], "score": [-1.0]}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (KNOWN, "right"),
        (KNOWN | {"score": [-1.00005]}, "right"),  # a batch of another size rounds otherwise
        (KNOWN | {"translation": ["der Hund"]}, "tie"),
        (KNOWN | {"score": [-1.001]}, "wrong"),
        ({"translation": ["der Hund"], "score": [-1.1]}, "wrong"),
        ({"score": [-1.0]}, "wrong"),
        (KNOWN | {"is_cut": [False]}, "wrong"),
        (KNOWN | {"score": [-1.0, -1.0]}, "wrong"),
    ],
)
def test_an_answer_is_right_if_its_texts_are_equal_and_its_scores_nearly_so(answer, expected):
    assert verdict(answer, KNOWN) == expected
