"""ICU messages with branches in requests to a local server, over a graph that writes what it reads in capitals."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from export.server.errors import RequestError
from export.server.messages import ALL, BEST, run_messages, sentences_in
from export.server.protection import INPUTS, UNPLACED, Traits, answered, run_protected
from export.server.signature import Signature, Tensor
from tests.support.capital_graph import capitals, firsts

LINES = ["a dog", "I see {n, plural, one {# dog} other {# dogs of {x}}}.", "", "{n, select, other {}}"]
TRANSLATIONS = ["A DOG", "{n, plural, one {I SEE # DOG.} other {I SEE # DOGS OF {x}.}}", "", "{n, select, other {}}"]


def column(values):
    return np.array([value.encode() for value in values], object)


@pytest.mark.parametrize("protect", [[""], ["placeholders", "", "numbers", ""]])
def test_a_message_has_the_outputs_of_its_sentences_and_other_lines_their_own(protect):
    inputs = {each.name: column([""]) for each in INPUTS} | {"text": column(LINES), "protect": column(protect)}

    def run(outputs, inputs, branches):
        return run_protected(capitals, outputs, inputs, Traits(), branches)

    answer = run_messages(run, (ALL, "scores", UNPLACED), inputs, ALL)
    assert firsts(answer[ALL]) == TRANSLATIONS and firsts(answer[UNPLACED]) == [""] * 4
    assert answer["scores"].shape == (4, 2) and answer["scores"][:2, 0].tolist() == [-1, -1]


def test_so_does_the_signature_of_the_best_translation_alone():
    def run(outputs, inputs, branches):
        upper = np.array([text.upper() for text in inputs["text"]], object)
        return {BEST: upper, "is_cut": np.array([b"DOGS" in text for text in upper])}

    lines = [LINES[1].replace(" of {x}", ""), "a"]
    answer = run_messages(run, (BEST, "is_cut"), {"text": column(lines)}, BEST)
    assert answer[BEST].tolist() == [b"{n, plural, one {I SEE # DOG.} other {I SEE # DOGS.}}", b"A"]
    assert answer["is_cut"].tolist() == [True, False]


def test_the_best_translation_alone_leaves_a_branch_that_would_lose_its_number_or_an_argument():
    def run(outputs, inputs, branches):
        return {BEST: np.array([text.upper().replace(b"# ", b"") for text in inputs["text"]], object)}

    lines = ["{n, plural, one {a dog} other {# dogs}}", "# {n, select, other {b {x}}}", "# a"]
    answer = run_messages(run, (BEST,), {"text": column(lines)}, BEST)
    assert answer[BEST].tolist() == [
        b"{n, plural, one {A DOG} other {# dogs}}",
        b"{n, select, other {# b {x}}}",
        b"A",
    ]


@pytest.mark.parametrize("line, is_told", [("a", False), ("{n} a", False), ("{n, plural, other {# a}}", True)])
def test_what_branches_lack_is_answered_without_being_asked_for(line, is_told):
    inputs = {"text": column(["a", line])} | {each.name: column([""]) for each in INPUTS}
    assert (UNPLACED in answered((ALL, UNPLACED), inputs, False)) == is_told
    assert answered((ALL, UNPLACED), inputs, True) == (ALL, UNPLACED)


def test_a_line_of_too_many_sentences_is_refused_before_it_is_translated():
    line = "{n, plural, other {a}} " * 1001
    with pytest.raises(RequestError, match="A line has more than 1000 sentences"):
        run_messages(functools.partial(pytest.fail, "it ran"), (BEST,), {"text": column([line])}, BEST)


@pytest.mark.parametrize("are_texts", [False, True])
def test_the_sentences_of_messages_are_counted_before_any_is_translated(are_texts):
    inputs = {"text": column(["a dog", LINES[1] * 2]), "language": column(["en"]), "format": column(["text"])}
    inputs["output_language"] = column([""])
    inputs["paragraphs"] = np.array([are_texts])
    signatures = (("translate", ALL), ("score", "score"), ("explain", ALL))
    signatures = [Signature(name, {}, {output: Tensor("", tf.string, (None,))}, {}) for name, output in signatures]
    assert [sentences_in(each, inputs) for each in signatures] == [5, 0, 0]
