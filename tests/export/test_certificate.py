"""The parts of a certificate; test_export_command.py reads a whole one."""

import contextlib
import json
import types

import pytest

from export.__main__ import app
from export.certificate import certificate
from export.certificate.certificate import RuntimeCheck, agreement_in, equality_in, example_of, in_batches, summary
from export.graph.operations import OF_OLDEST, meta_graph, operations_in
from export.server import version
from export.server.version import Version, warm_up_requests
from export.versions import CERTIFICATE, LITERT, ExportError
from keras_transformer.decoding.options import RUN_OPTIONS, SearchOptions
from keras_transformer.files import sha256_of
from keras_transformer.run_folder import RunFolder
from keras_transformer.translation import Translation
from tests.support.commands import assert_one_sentence, invoke

LINES = ["one", "two", "three", "four", "five"]


def echo(lines):
    return [Translation(line, -1.0) for line in lines]


def test_the_example_has_about_seven_words():
    lines = ["one", "a b c d e f g h", "a b c d e f g", "g f e d c b a", "many " * 30]
    assert example_of(lines) == "a b c d e f g"
    assert example_of(lines[:2]) == "a b c d e f g h"


@pytest.mark.parametrize(
    ("content", "expected"),
    [(None, ""), ("{", ""), ("[]", ""), ("{}", ""), ("\udcff", ""), ('{"example": "ein Satz"}', "ein Satz")],
)
def test_a_version_without_a_readable_certificate_has_no_example(tmp_path, content, expected):
    if content is not None:
        (tmp_path / CERTIFICATE).write_bytes(content.encode("utf-8", "surrogateescape"))
    assert version.example_of(tmp_path) == expected


@pytest.mark.parametrize("order", ["given", "shuffled"])
def test_answers_are_compared_with_those_of_their_own_lines(order):
    asked = []

    def translate(lines):
        asked.extend(lines)
        return echo(lines)

    agreed = agreement_in(RuntimeCheck("any", 5, order, 4, translate), LINES, echo(LINES), tie=1e-4)
    assert (agreed.same, agreed.ties, agreed.disagreements) == (4, 0, [])
    assert sorted(asked) == sorted(LINES[:4]) and (asked == LINES[:4]) == (order == "given")


def test_the_order_is_the_same_each_time():
    lines, asked = [str(number) for number in range(20)], []
    for _ in range(2):
        check = RuntimeCheck("any", 5, "shuffled", 20, lambda lines: asked.append(lines) or echo(lines))
        agreement_in(check, lines, echo(lines), tie=1e-4)
    assert asked[0] == asked[1] != lines


def test_an_answer_to_another_line_is_a_disagreement_or_a_tie():
    others = [Translation("two", -1.0), Translation("two", -2.0)]
    agreed = agreement_in(RuntimeCheck("any", 1, "given", 2, lambda lines: others), LINES, echo(LINES), tie=1e-4)
    assert agreed.ties == 1 and agreed.disagreements[0].number == 2


def test_batches_have_so_many_lines():
    sizes = []

    def translate(lines):
        sizes.append(len(lines))
        return echo(lines)

    assert in_batches(translate, 2)(LINES) == echo(LINES)
    assert sizes == [2, 2, 1]


class Asked:
    """A way to translate that keeps the sizes of the batches that it is asked for."""

    def __init__(self, rows_per_request=None):
        self.sizes, self.batch_size, self.rows_per_request = [], 32, rows_per_request

    def translate(self, lines):
        self.sizes.append(len(lines))
        return echo(lines)


CHECKS = [  # runtime, rows, order, lines, sizes of the batches
    ("SavedModel in Python", 32, "given", 300, [300]),
    ("SavedModel in Python", 7, "shuffled", 200, [7] * 28 + [4]),
    ("SavedModel in Python", 1, "given", 50, [1] * 50),
    ("C API", 32, "shuffled", 200, [200]),
    ("C API", 1, "given", 50, [50]),
    ("local server, REST", 5, "shuffled", 200, [200]),
    ("local server, REST, by LiteRT", 1, "given", 50, [1] * 50),
    ("local server, gRPC", 5, "shuffled", 200, [200]),
    ("local server, gRPC, by LiteRT", 1, "given", 50, [1] * 50),
]


@pytest.mark.parametrize("lines", [300, 60, 4])
@pytest.mark.parametrize("left_out", ["", "C API", "LiteRT"])
def test_each_runtime_is_compared_in_large_and_small_batches_and_in_two_orders(lines, left_out, tmp_path, monkeypatch):
    by_c_api, clients = [], {name: Asked(rows_per_request=5) for name in ("REST", "gRPC")}
    exported = Asked()

    def c_runtime(version, rows):
        by_c_api.append((version, rows))
        return exported

    monkeypatch.setattr(certificate, "CRuntime", c_runtime)
    monkeypatch.setattr(certificate, "local_clients", lambda version: contextlib.nullcontext(clients))
    monkeypatch.setattr(certificate, "c_library", lambda package: None if left_out == "C API" else "library")
    if left_out != "LiteRT":
        (tmp_path / LITERT).mkdir(parents=True)
    found = []
    for check in certificate.runtime_checks(tmp_path, exported, lines):
        asked = clients[check.runtime[14:18]] if check.runtime.startswith("local") else exported
        asked.sizes = []
        check.translate([""] * check.lines)
        found.append((*check[:4], asked.sizes))
    expected = [check for check in CHECKS if not left_out or left_out not in check[0]]
    if lines == 300:
        assert found == expected
    assert [check[:3] for check in found] == [check[:3] for check in expected]
    assert [check[3] for check in found] == [min(lines, check[3]) for check in expected]
    assert by_c_api == ([] if left_out == "C API" else [(tmp_path, 32), (tmp_path, 1)])


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


@pytest.mark.parametrize("has_shortlist", [False, True])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_certificate_says_what_was_compared_and_of_what_it_is_made(precision, has_shortlist, tmp_path, monkeypatch):
    run, ties = RunFolder(tmp_path / "run"), []
    run.path.mkdir()
    for number, file in enumerate((run.weights, run.tokenizer, run.model, run.shortlist)):
        file.write_bytes(bytes([number]))
    exported = Asked()
    translator = types.SimpleNamespace(
        translate=echo, shortlist="a shortlist" if has_shortlist else None, tokenizer="its tokenizer",
        options=SearchOptions(beam_size=3, length_penalty=0.25),
    )  # fmt: skip
    stand_ins = {
        "open_quietly": lambda version: exported,
        "runtime_checks": lambda version, exported, lines: [RuntimeCheck("any", 1, "given", lines, exported.translate)],
        "equality_in": lambda check, lines, expected, tie: ties.append(tie) or (check.lines, expected == echo(lines)),
        "meta_graph": lambda version: "graph",
        "operations_in": lambda graph: {"NewOp"},
        "oldest_tensorflow": lambda operations, own: f"{operations} {own}",
        "package_versions": lambda packages: dict.fromkeys(packages, "9"),
        "latencies": lambda translate, tokenizer, lines: [translate == exported.translate, tokenizer, *lines],
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(certificate, name, stand_in)
    lines = ["one", "a b c d e f g"]
    content = certificate.certify(tmp_path, run, translator, lines, precision, 2)
    assert json.loads((tmp_path / CERTIFICATE).read_text(encoding="utf-8")) == json.loads(json.dumps(content))
    assert content["equality"] == [(2, True)] and ties == [{"float32": 1e-4, "bfloat16": 0.1}[precision]]
    files = [run.weights, run.tokenizer, run.model, *([run.shortlist] if has_shortlist else [])]
    assert content["sha256"] == {file.name: sha256_of(file) for file in files}
    assert (content["precision"], content["alignment_layer"]) == (precision, 2)
    assert content["search"] == {name: getattr(translator.options, name) for name in RUN_OPTIONS}
    assert content["example"] == lines[1] and content["oldest_tensorflow"] == "{'NewOp'} 9"
    assert set(content["made_with"]) == {"tensorflow", "tensorflow-text", "keras", "sentencepiece"}
    assert content["latency"]["by_source_tokens"] == [True, "its tokenizer", *lines]


def test_a_certificate_in_a_few_lines():
    check = {"runtime": "C API", "rows": 1, "order": "given", "lines": 9, "same": 8, "ties": 1}
    latency = {"source_tokens": "1-8", "p50": 1.2, "p95": 2.3, "p99": 3.4}
    content = {
        "equality": [check, check | {"rows": 7, "order": "shuffled", "same": 7, "ties": 2}],
        "latency": {"by_source_tokens": [latency]}, "oldest_tensorflow": "2.12",
    }  # fmt: skip
    assert summary(content).splitlines() == [
        "C API, 1 line together, given order: 8 of 9 translations the same, 1 tie",
        "C API, 7 lines together, shuffled order: 7 of 9 translations the same, 2 ties",
        "one sentence of 1-8 tokens takes 1 ms (median), 2 ms (95th percentile), 3 ms (99th)",
        "runs in TensorFlow 2.12 and later; all of this in certificate.json",
    ]


@pytest.mark.slow
def test_every_operation_of_an_export_is_known_and_functions_are_no_operations(whole_version):
    operations = operations_in(meta_graph(whole_version))
    assert operations <= OF_OLDEST and {"While", "SentencepieceOp", "TopKV2"} <= operations


@pytest.mark.release
def test_every_signature_is_warmed_up_and_answers_its_requests(whole_version):
    asked = [request.model_spec.signature_name for request in warm_up_requests(whole_version)]
    assert set(asked) == {"serving_default", "translate", "score", "tokenize", "explain"}
    assert Version(whole_version).warm_up() == len(asked)


@pytest.mark.slow
def test_the_alignment_layer_of_the_command_arrives(random_folder, tmp_path):
    result = invoke(app, random_folder, "--to", tmp_path, "--alignment-layer", "7", "--no-check")
    assert_one_sentence(result, "alignment_layer is 7", "1 to")
