"""What a soak takes for the right answer."""

import pytest

from benchmarks.speed.soak_questions import contents, verdict

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


def test_scores_of_several_translations_are_compared_one_by_one():
    known = {"translations": [["a", "b"]], "scores": [[-1.0, -2.0]], "counts": [2]}
    assert verdict(known, known) == "right"
    assert verdict(known | {"scores": [[-2.0, -1.0]]}, known) == "wrong"
    assert verdict(known | {"counts": [1]}, known) == "tie"


def test_every_sentence_is_asked_and_every_kind_of_question():
    sentences = [f"sentence {number}" for number in range(50)]
    asked = contents(sentences)
    assert [content["inputs"]["text"] for kind, _, content in asked if kind == "plain"] == [
        [each] for each in sentences
    ]
    assert {kind for kind, *_ in asked} == {"plain", "options", "explain", "paragraphs"}
    assert {group for kind, group, _ in asked if kind == "options"} >= {"['alignments']", "['target_prefix']"}
