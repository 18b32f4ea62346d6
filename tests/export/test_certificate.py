"""The parts of a certificate; test_export_command.py reads a whole one."""

import pytest

from export.__main__ import app
from export.certificate.certificate import RuntimeCheck, agreement_in, equality_in
from export.graph.operations import OF_OLDEST, meta_graph, operations_in
from export.server.version import Version, warm_up_requests
from export.versions import ExportError
from keras_transformer.pieces.translation import Translation
from tests.support.commands import assert_one_sentence, invoke

LINES = ["one", "two", "three", "four", "five"]


def echo(lines):
    return [Translation(line, -1.0) for line in lines]


@pytest.mark.parametrize("order", ["given", "shuffled"])
def test_answers_are_compared_with_those_of_their_own_lines(order):
    asked = []

    def translate(lines):
        asked.extend(lines)
        return echo(lines)

    agreed = agreement_in(RuntimeCheck("any", 5, order, 4, translate), LINES, echo(LINES), tie=1e-4)
    assert (agreed.same, agreed.ties, agreed.disagreements) == (4, 0, [])
    assert sorted(asked) == sorted(LINES[:4]) and (asked == LINES[:4]) == (order == "given")


def test_an_answer_to_another_line_is_a_disagreement_or_a_tie():
    others = [Translation("two", -1.0), Translation("two", -2.0)]
    agreed = agreement_in(RuntimeCheck("any", 1, "given", 2, lambda lines: others), LINES, echo(LINES), tie=1e-4)
    assert agreed.ties == 1 and agreed.disagreements[0].number == 2


def test_an_entry_counts_ties_and_a_difference_names_the_runtime_and_the_first_line():
    def answer(score, text="two"):
        return RuntimeCheck("any", 7, "given", 2, lambda lines: [Translation("one", -1.0), Translation(text, score)])

    counts = {"same": 1, "ties": 1, "different": 0}
    shape = {"runtime": "any", "rows": 7, "order": "given", "lines": 2}
    assert equality_in(answer(-1.0, "zwei"), LINES, echo(LINES), 1e-4) == shape | counts
    with pytest.raises(
        ExportError, match=r"\(any, 7 lines together\): first in line 2, 'two': .*Nothing was published"
    ):
        equality_in(answer(-1.5), LINES, echo(LINES), 1e-4)
    assert equality_in(answer(-1.5), LINES, echo(LINES), 0.6)["same"] == 2


@pytest.mark.nightly
def test_every_operation_of_an_export_is_known_and_functions_are_no_operations(whole_version):
    operations = operations_in(meta_graph(whole_version))
    assert operations <= OF_OLDEST and {"While", "SentencepieceOp", "TopKV2"} <= operations


@pytest.mark.release
def test_every_signature_is_warmed_up_and_answers_its_requests(whole_version):
    asked = [request.model_spec.signature_name for request in warm_up_requests(whole_version)]
    assert set(asked) == {"serving_default", "translate", "score", "tokenize", "explain"}
    assert Version(whole_version).warm_up() == len(asked)


@pytest.mark.nightly
def test_the_alignment_layer_of_the_command_arrives(random_folder, tmp_path):
    result = invoke(app, random_folder, "--to", tmp_path, "--alignment-layer", "7", "--no-check")
    assert_one_sentence(result, "aligned by block 7", "1 to")
