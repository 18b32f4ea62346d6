"""Protected spans and glossaries of requests to a local server, over a graph that writes what it reads in capitals."""

import numpy as np
import pytest
import tensorflow as tf

from export.server.errors import RequestError
from export.server.protection import (
    FORCED,
    INPUTS,
    REMAINING,
    UNPLACED,
    Traits,
    answered,
    run_protected,
    with_protection,
)
from export.server.signature import Signature, Tensor
from export.server.version import Version, aligns
from keras_transformer.runs.versions import CERTIFICATE
from keras_transformer.text.placeholders import placeholders_known
from tests.support.capital_graph import capitals, firsts

NONE = Traits()
OUTPUTS = ("translations", "alignments", "scores")
GRAPH = Signature(
    "translate",
    {"text": Tensor("text:0", tf.string, (None,))},
    {name: Tensor(f"{name}:0", tf.string, (None, 2)) for name in OUTPUTS},
    {},
)


def ask(lines, outputs=("translations", UNPLACED, "scores"), traits=NONE, **asked):
    inputs = {"text": np.array([line.encode() for line in lines], object)}
    for each in INPUTS:
        values = asked.get(each.name, [""])
        inputs[each.name] = np.array([value.encode() for value in values], object)
    for name in {"required", "forbidden"} & set(asked):
        inputs[name] = np.array([value.encode() for value in asked[name]], object)
    return run_protected(capitals, outputs, inputs, traits)


def test_spans_and_terms_come_through():
    lines = ["see {x} <b>now</b>", "a dog in Firefox", "no spans", "{x} <i>{y}</i>"]
    answer = ask(lines, protect=["placeholders, tags"], keep=["Firefox"], glossary=["dog\tKöter"])
    assert firsts(answer["translations"]) == ["SEE {x} <b>NOW</b>", "A Köter IN Firefox", "NO SPANS", lines[3]]
    assert answer["scores"][:, 0].tolist() == [-1, -1, -1, 0]
    assert firsts(answer[UNPLACED]) == [""] * 4


def test_a_model_that_knows_placeholders_gets_them_in_place_of_spans():
    lines = ["see {x} and {y} <b>with {z}</b>", "a dog"]
    answer = ask(lines, traits=Traits(2), protect=["placeholders,tags"], glossary=["dog\tHund"])  # by the alignment
    assert firsts(answer["translations"]) == ["SEE {x} AND {y} <b>WITH {z}</b>", "A Hund"]


def test_of_a_model_that_does_not_align_terms_become_placeholders_too():
    asked = {"glossary": ["dog\tHund"], "keep": ["Rex"]}
    lines = ["alone: a dog, Rex"]
    assert firsts(ask(lines, traits=Traits(2), **asked)[UNPLACED]) == ["Hund\nRex"]
    answer = ask(lines, traits=Traits(2, aligns=False), **asked)
    assert firsts(answer["translations"]) == ["ALONE: A Hund, Rex"] and firsts(answer[UNPLACED]) == [""]


@pytest.mark.parametrize(
    ("certificate", "aligned"),
    [
        (None, True),
        ("{", True),
        ("[]", True),
        ("{}", True),
        ('{"alignment_layer": 1}', True),
        ('{"alignment_layer": 0}', False),
    ],
)
def test_a_version_says_whether_its_model_aligns_words(tmp_path, certificate, aligned):
    if certificate is not None:
        (tmp_path / CERTIFICATE).write_text(certificate)
    assert aligns(tmp_path) is aligned


@pytest.mark.parametrize("aligned", [True, False])
def test_a_version_that_does_not_align_words_hides_terms(aligned):
    version = Version.__new__(Version)  # without a graph
    of_graph = {"_compute": lambda signature, *asked: capitals(*asked), "_few": None}
    vars(version).update(of_graph, signatures={}, _traits=Traits(2, aligned))
    inputs = {each.name: np.array([b""], object) for each in INPUTS}
    inputs |= {"text": np.array([b"alone: a dog"], object), "glossary": np.array([b"dog\tHund"], object)}
    answer = version.run(GRAPH, ("translations", UNPLACED), inputs)
    assert firsts(answer[UNPLACED]) == (["Hund"] if aligned else [""])


def test_a_graph_that_divides_placeholders_into_pieces_knows_none():
    pieces = "\u2581 \u27e61\u27e7 \u2581 \u27e62\u27e7 \u2581 \u27e6 3 \u27e7".split(" ")
    assert placeholders_known(lambda text: pieces) == 2
    assert placeholders_known(lambda text: ["\u2581\u27e6", "1", "\u27e7"]) == 0


def test_phrases_that_a_term_replaced_are_named_and_those_that_it_brought():
    asked = {"glossary": ["dog\tK\u00f6ter"], "required": ["dog\nRUNS ", "", "cat"], "forbidden": ["k\u00f6ter"]}
    answer = ask(["a dog runs", "a dog", ""], outputs=(REMAINING, UNPLACED), **asked)
    assert firsts(answer[UNPLACED]) == ["dog", "", "cat"] and firsts(answer[REMAINING]) == ["K\u00f6ter"] * 2 + [""]
    assert answer[UNPLACED][:, 1].tolist() == [b""] * 3
    nothing = ask(["a dog"], outputs=(REMAINING, UNPLACED), glossary=["dog\tK\u00f6ter"])
    assert firsts(nothing[UNPLACED]) == firsts(nothing[REMAINING]) == [""]


def test_no_term_replaces_a_phrase_that_must_come():
    asked = {"glossary": ["dog\tK\u00f6ter"], "required": ["DOG", ""], "outputs": ("translations", UNPLACED)}
    answer = ask(["a dog runs", "a dog runs"], **asked)
    assert firsts(answer["translations"]) == ["A DOG K\u00f6ter RUNS", "A K\u00f6ter RUNS"]
    assert firsts(answer[UNPLACED]) == ["", ""]


def test_each_line_may_ask_for_its_own():
    answer = ask(["a dog", "a dog"], glossary=["dog\tHund", "dog\tKöter"])
    assert firsts(answer["translations"]) == ["A Hund", "A Köter"]


def test_what_has_no_place_is_named():
    answer = ask(["{x} alone {y}"], outputs=(UNPLACED,), protect=["placeholders"])
    assert list(answer) == [UNPLACED] and firsts(answer[UNPLACED]) == ["{x}\n{y}"]


@pytest.mark.parametrize("keeps, asked", [(None, b""), ([1], b""), ([0], b"7"), ([1, 0], b"7")])
def test_a_line_without_a_letter_is_left_to_the_graph_if_a_request_reads_one(keeps, asked):
    inputs = {"text": np.array([b"a", b"7"], object)} | {each.name: np.array([b""], object) for each in INPUTS}
    inputs |= {} if keeps is None else {"keep_letterless": np.array(keeps, np.int32)}
    given = []

    def compute(names, inputs):
        given.extend(inputs["text"])
        return capitals(names, {"text": inputs["text"]})

    answer = run_protected(compute, ("translations",), inputs, NONE)
    assert given == [b"a", asked] and firsts(answer["translations"]) == ["A", "7"]


@pytest.mark.parametrize("more", [{}, {"keep_letterless": [1]}, {"keep_letterless": []}, {"require_numbers": []}])
def test_no_lines_have_no_translations(more):
    inputs = {each.name: np.array([b"urls"][: each is INPUTS[0]], object) for each in INPUTS}
    inputs |= {name: np.array(values, np.int32) for name, values in more.items()} | {"text": np.array([], object)}
    found = run_protected(lambda names, of: capitals(names, {"text": of["text"]}), (*OUTPUTS, UNPLACED), inputs, NONE)
    assert {name: values.shape for name, values in found.items()} == dict.fromkeys((*OUTPUTS, UNPLACED), (0, 2))


def test_a_line_that_is_no_text_is_left_to_the_graph():
    with pytest.raises(UnicodeDecodeError):  # of this graph, which gets it as it is
        run_protected(
            capitals,
            OUTPUTS,
            {
                "text": np.array([b"\xff"], object),
                **{each.name: np.array([b"urls"], object) for each in INPUTS[:1]},
                **{each.name: np.array([b""], object) for each in INPUTS[1:]},
            },
            NONE,
        )


@pytest.mark.parametrize("name", [each.name for each in INPUTS])
def test_what_is_asked_in_another_encoding_is_refused_and_not_left_out(name):
    inputs = {each.name: np.array([b"\xff" if each.name == name else b""], object) for each in INPUTS}
    with pytest.raises(RequestError, match="protect, keep, glossary must be UTF-8"):
        run_protected(capitals, OUTPUTS, inputs | {"text": np.array([b"a dog"], object)}, NONE)


def test_required_phrases_in_another_encoding_are_missing_and_forbidden_ones_refused():
    inputs = {each.name: np.array([b""], object) for each in INPUTS} | {"text": np.array([b"a dog"], object)}
    inputs["required"] = np.array([b"\xff\n A \nA"], object)
    assert firsts(run_protected(capitals, (UNPLACED,), inputs, NONE)[UNPLACED]) == ["\ufffd"]
    with pytest.raises(RequestError, match="forbidden phrases must be UTF-8"):
        run_protected(capitals, (UNPLACED,), inputs | {"forbidden": np.array([b"\xfe DOG\nDOG"], object)}, NONE)


@pytest.mark.parametrize("alignment", [b"0-0", b""])
def test_of_an_empty_translation_spans_are_named_if_it_is_the_best_one(alignment):
    """A further rank that the search did not fill has neither text nor alignment."""

    def nothing(names, inputs):
        found = {"translations": np.array([[b"", b""]], object), "alignments": np.array([[alignment, b""]], object)}
        return {name: found[name] for name in names}

    inputs = {each.name: np.array([b""], object) for each in INPUTS} | {"protect": np.array([b"placeholders"], object)}
    inputs["text"] = np.array([b"a {x} b"], object)
    answer = run_protected(nothing, ("translations", UNPLACED), inputs, NONE)
    assert answer["translations"][0, 0] + answer[UNPLACED][0, 0] == b"{x}"
    assert answer[UNPLACED][0, 1] == b""


@pytest.mark.parametrize(
    "asked, message",
    [
        ({"protect": ["links"]}, "protect has 'links'; it may have urls"),
        ({"glossary": ["dog"]}, "glossary, line 1 has no tab"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(asked, message):
    with pytest.raises(RequestError, match=message):
        ask(["a dog"], **asked)


def test_only_translate_has_these_inputs_and_answers_as_before_without_them():
    extended = with_protection(GRAPH)
    assert set(extended.inputs) == {"text", "protect", "keep", "glossary"}
    for lacking in ("translations", "alignments"):
        short = GRAPH._replace(outputs={name: GRAPH.outputs[name] for name in OUTPUTS if name != lacking})
        assert with_protection(short) == short
    assert with_protection(GRAPH._replace(name="explain")).inputs == GRAPH.inputs
    inputs = extended.complete({"text": np.array([b"a"], object)})
    names = extended.output_names([])
    assert answered(names, inputs, is_named=False) == tuple(sorted(OUTPUTS))
    assert answered(names, inputs, is_named=True) == names
    assert answered(names, inputs | {"protect": np.array([b"urls"], object)}, is_named=False) == names
    names = with_protection(GRAPH._replace(inputs=GRAPH.inputs | {"forbidden": GRAPH.inputs["text"]})).output_names([])
    assert set(names) == {*OUTPUTS, UNPLACED, REMAINING}
    for name, outputs in {"required": (UNPLACED, FORCED), "forbidden": (REMAINING,)}.items():
        asked = answered((*names, FORCED), inputs | {name: np.array([b"", b"a"], object)}, is_named=False)
        assert set(asked) == {*OUTPUTS, *outputs}
