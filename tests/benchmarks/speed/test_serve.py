"""The benchmark of the local server finds wrong answers and errors, and writes its tables."""

import concurrent.futures
import json

import grpc
import pytest
from typer.testing import CliRunner

from benchmarks.speed import serve
from benchmarks.speed.serve_client import ask_for, expected_answers
from keras_transformer.pieces.translation import Translation
from keras_transformer.runs.versions import LITERT
from tests.support.servers import serving

SENTENCES = ["one", "two dogs", "three"]


@pytest.fixture(scope="module")
def served(echo_folder):
    with serving(echo_folder) as address:
        yield address


@pytest.fixture(scope="module")
def url(served):
    return served.url


@pytest.mark.parametrize("protocol", ["rest", "grpc"])
def test_right_answers_are_counted_and_timed(served, protocol):
    asked = {"rest": served.url, "grpc": served.grpc_url}[protocol]
    load = ask_for(asked, expected_answers(served.url, SENTENCES), clients=3, seconds=0.3)
    assert len(load.latencies) >= 3 and (load.ties, load.wrong, load.errors, load.refusals) == (0, [], [], [])


def test_an_answer_of_another_sentence_is_noticed(url):
    right = dict(expected_answers(url, SENTENCES))
    swapped = [("one", right["three"]), ("two dogs", Translation("other", right["two dogs"].score))]
    load = ask_for(url, swapped, clients=2, seconds=0.2)
    assert set(load.wrong) == {"one"} and load.ties > 0


def test_a_server_that_is_gone_is_an_error():
    load = ask_for("http://127.0.0.1:9/v1/models/x", [("a", Translation("a", 0.0))], clients=1, seconds=0.05)
    assert set(load.errors) == {"ConnectionRefusedError"} and load.latencies == []


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_an_error_of_the_server_is_counted_by_its_code(served, scheme):
    other = {"http": f"{served.url}x", "grpc": f"{served.grpc_url}x"}[scheme]
    load = ask_for(other, [("a", Translation("a", 0.0))], clients=1, seconds=0.05)
    assert set(load.errors) == {{"http": "status 404", "grpc": "status NOT_FOUND"}[scheme]} and load.latencies == []


def test_a_full_queue_is_a_refusal_and_each_client_by_grpc_has_a_connection_of_its_own():
    peers = set()

    def full(request, context):
        peers.add(context.peer())
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "full")

    handler = grpc.unary_unary_rpc_method_handler(full)
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(3))
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("tensorflow.serving.PredictionService", {"Predict": handler})]
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    load = ask_for(f"grpc://127.0.0.1:{port}/x", [("a", Translation("a", 0.0))], clients=3, seconds=0.3)
    server.stop(None)
    assert len(load.refusals) >= 3 and load.errors == load.latencies == [] and len(peers) == 3


def test_an_export_with_litert_is_served_without_it_too(tmp_path):
    for path in ("saved_model.pb", f"{LITERT}/search.tflite", "assets.extra/inference.json"):
        (tmp_path / "export" / "2" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "export" / "2" / path).write_text(path, encoding="utf-8")
    with serve.engines_of(tmp_path / "export") as engines:
        bare = engines["graph"] / "2"
        assert {str(path.relative_to(bare)) for path in bare.rglob("*") if path.is_file()} == {
            "saved_model.pb",
            "assets.extra/inference.json",
        }
        assert (bare / "saved_model.pb").read_text(encoding="utf-8") == "saved_model.pb"
        assert engines["graph and LiteRT"] == tmp_path / "export"


@pytest.mark.release
def test_the_smallest_measurement_writes_its_results(echo_folder, tmp_path):
    (tmp_path / "lines").write_text("\n".join(SENTENCES), encoding="utf-8")
    options = ["--seconds", 0.5, "--clients", "1,4", "--lines", tmp_path / "lines", "--results", tmp_path]
    options += ["--protocols", "rest,grpc"]
    result = CliRunner().invoke(serve.app, list(map(str, [echo_folder, *options])))
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "serve_load.json").read_text())
    for load in (*found["loads"], found["beyond"]):
        assert load["latencies"]["count"] > 0 and load["wrong"] == load["errors"] == []
    assert [(load["protocol"], load["clients"]) for load in found["loads"]] == [
        ("rest", 1), ("rest", 4), ("grpc", 1), ("grpc", 4)
    ]  # fmt: skip
    assert found["many"]["graph"] > 0
    page = (tmp_path / "serve_load.md").read_text()
    assert (
        "| graph | grpc | 4 | " in page
        and "refused with 503" in page
        and (tmp_path / "serve_load.png").stat().st_size > 0
    )
