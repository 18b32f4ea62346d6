"""A local server answers as TensorFlow Serving does, over REST and gRPC, whatever the signature."""

import concurrent.futures
import threading
import time

import grpc
import pytest
import requests
import tensorflow as tf
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from export.server import json_codec, protobuf_codec
from export.server.batcher import Batcher
from export.server.options import ServerOptions
from export.server.process import local_server
from export.server.version import Version
from tests.support.echo import write_echo
from tests.support.processes import wait_until

OPTIONS = ServerOptions(
    port=0, grpc_port=0, workers=2, batch_rows=8, request_rows=40, queue_rows=20, body_bytes=1 << 20, deadline=20.0
)
SLOW = 1.0  # seconds of work


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "echo"
    write_echo(folder / "3")
    with local_server(folder, OPTIONS) as address:
        yield address


def post(server, content, path="", **options):
    send = {"data": content} if isinstance(content, bytes) else {"json": content}
    return requests.post(f"{server.url}{path}:predict", timeout=60, **send, **options)


@pytest.fixture(scope="module")
def predict(server):
    with grpc.insecure_channel(f"{server.host}:{server.grpc_port}") as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)

        def call(signature="", version=None, outputs=(), timeout=60, model="echo", **inputs):
            request = predict_pb2.PredictRequest(output_filter=outputs)
            request.model_spec.name, request.model_spec.signature_name = model, signature
            if version:
                request.model_spec.version.value = version
            for name, value in inputs.items():
                request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
            response = stub.Predict(request, timeout=timeout)
            return {name: tf.make_ndarray(tensor).tolist() for name, tensor in response.outputs.items()}, response

        yield call


def test_rows_columns_and_grpc_give_the_same_answer(server, predict):
    texts, expected = ["a", "ü", ""], {"translation": ["a", "ü", ""], "score": [-1.0, -2.0, 0.0]}
    by_row = post(server, {"instances": texts})
    assert by_row.status_code == 200 and by_row.headers["content-type"] == "application/json"
    rows = [dict(zip(expected, row, strict=True)) for row in zip(*expected.values(), strict=True)]
    assert by_row.json() == {"predictions": rows}
    assert post(server, {"instances": [{"text": text} for text in texts]}).json() == {"predictions": rows}
    assert post(server, {"inputs": {"text": texts}}).json() == {"outputs": expected}
    outputs, response = predict(text=texts)
    assert outputs == expected | {"translation": [text.encode() for text in texts]}
    spec = response.model_spec
    assert (spec.name, spec.version.value, spec.signature_name) == ("echo", 3, "serving_default")


def test_inputs_that_are_left_out_have_their_defaults(server, predict):
    content = {"signature_name": "repeat", "instances": [{"text": "ab"}]}
    assert post(server, content).json()["predictions"][0]["repeated"] == "abab"
    assert post(server, {"signature_name": "repeat", "inputs": {"text": ["ab", "c"], "times": [3]}}).json()["outputs"][
        "repeated"
    ] == ["ababab", "ccc"]
    assert predict("repeat", text=["ab", "c"])[0]["repeated"] == [b"abab", b"cc"]
    assert predict("repeat", text=["ab", "c"], times=[1, 3])[0]["repeated"] == [b"ab", b"ccc"]


def test_other_ranks_and_types_are_served(server, predict):
    assert predict("reduce", pair=[[1.0, 2.0], [3.0, 4.0]])[0] == {"total": [3.0, 7.0], "of": 4}
    content = {"signature_name": "reduce", "inputs": {"pair": [[1, 2], [3, 4]], "is_sum": False}}
    assert post(server, content).json() == {"outputs": {"of": 4, "total": [2.0, 12.0]}}


def test_an_output_filter_chooses_outputs(predict):
    assert predict("repeat", text=["a"], outputs=["repeated"])[0] == {"repeated": [b"aa"]}


def test_zero_rows_are_an_answer_too(server, predict):
    assert post(server, {"inputs": {"text": []}}).json() == {"outputs": {"score": [], "translation": []}}
    assert predict(text=tf.constant([], tf.string))[0] == {"translation": [], "score": []}
    assert post(server, {"signature_name": "repeat", "inputs": {"text": [], "times": []}}).status_code == 200


def test_status_and_metadata(server):
    status = requests.get(server.url).json()
    ok = {"error_code": "OK", "error_message": ""}
    assert status == {"model_version_status": [{"version": "3", "state": "AVAILABLE", "status": ok}]}
    assert requests.get(f"{server.url}/versions/3").json() == status
    found = requests.get(f"{server.url}/metadata").json()
    assert found["model_spec"] == {"name": "echo", "signature_name": "", "version": "3"}
    signatures = found["metadata"]["signature_def"]["signature_def"]
    assert set(signatures) == {"serving_default", "repeat", "words", "reduce"}
    assert set(signatures["repeat"]["defaults"]) == {"times", "spin"}
    with grpc.insecure_channel(f"{server.host}:{server.grpc_port}") as channel:
        request = get_model_status_pb2.GetModelStatusRequest()
        request.model_spec.name = "echo"
        [entry] = model_service_pb2_grpc.ModelServiceStub(channel).GetModelStatus(request).model_version_status
        assert (entry.version, entry.state, entry.status.error_code) == (3, entry.AVAILABLE, 0)
        request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
        request.model_spec.name = "echo"
        response = prediction_service_pb2_grpc.PredictionServiceStub(channel).GetModelMetadata(request)
        definitions = get_model_metadata_pb2.SignatureDefMap()
        assert response.metadata["signature_def"].Unpack(definitions)
        assert set(definitions.signature_def) == set(signatures)


def test_the_first_page_shows_a_line_that_works(server):
    line = requests.get(f"http://{server.host}:{server.port}/").text
    assert line.startswith("curl ") and f":{server.port}/v1/models/echo:predict" in line


@pytest.mark.parametrize(
    ("content", "path", "status", "part"),
    [
        ({"instances": ["a"]}, "/versions/4", 404, "4"),
        ({"instances": ["a"], "signature_name": "none"}, "", 400, "none"),
        ({"inputs": {"txt": ["a"]}}, "", 400, "txt"),
        ({"inputs": {}}, "", 400, "text"),
        ({"inputs": {"text": "a"}}, "", 400, "(-1)"),
        ({"inputs": {"text": [["a"]]}}, "", 400, "(1, 1)"),
        ({"instances": ["a"] * 41}, "", 400, "41"),
        ({"inputs": ["a"] * 41}, "", 400, "41"),
        ({"signature_name": "repeat", "inputs": {"text": ["a"] * 2, "times": [1, 2, 3]}}, "", 400, "times"),
        ({"signature_name": "repeat", "inputs": {"text": ["a"], "times": [0]}}, "", 400, "times must be at least 1"),
        ({"signature_name": "repeat", "inputs": {"text": ["a"], "times": []}}, "", 400, "times"),
        (b"x" * (1 << 20 | 1), "", 413, "1048576"),
        (b"{", "", 400, "JSON"),
    ],
)
def test_a_mistake_in_a_request_is_named(server, content, path, status, part):
    response = post(server, content, path)
    assert response.status_code == status and set(response.json()) == {"error"} and part in response.json()["error"]


@pytest.mark.parametrize("path", ["/v1/models/other", "/v1/models/other/metadata", "/v2", "/v1/models/echo/versions/4"])
def test_what_is_not_there_is_not_found(server, path):
    response = requests.get(f"http://{server.host}:{server.port}{path}")
    assert response.status_code == 404 and set(response.json()) == {"error"}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"model": "other", "text": ["a"]}, "NOT_FOUND"),
        ({"model": "", "text": ["a"]}, "INVALID_ARGUMENT"),
        ({"version": 4, "text": ["a"]}, "NOT_FOUND"),
        ({"signature": "none", "text": ["a"]}, "FAILED_PRECONDITION"),
        ({"txt": ["a"]}, "INVALID_ARGUMENT"),
        ({"text": [1.0]}, "INVALID_ARGUMENT"),
        ({"text": [["a"]]}, "INVALID_ARGUMENT"),
        ({"text": ["a"], "outputs": ["none"]}, "INVALID_ARGUMENT"),
        ({"text": ["a"], "outputs": ["score", "score"]}, "INVALID_ARGUMENT"),
        ({"signature": "repeat", "text": ["a"], "times": [0]}, "INVALID_ARGUMENT"),
        ({"signature": "repeat", "text": ["a"], "spin": [SLOW], "timeout": 0.2}, "DEADLINE_EXCEEDED"),
    ],
)
def test_grpc_has_a_code_for_each_mistake(predict, arguments, code):
    with pytest.raises(grpc.RpcError) as error:
        predict(**arguments)
    assert error.value.code().name == code


# requests that are computed together


@pytest.fixture
def together(predict, monkeypatch):
    """Map a function, with errors as results: both workers are busy until all requests wait. To be used once."""
    begun, come, is_over, run, compute = [], [], threading.Event(), Version.run, Batcher.compute

    def held(*arguments):
        begun.append(arguments)
        is_over.wait(60)
        return run(*arguments)

    def occupy_one(executor):
        """Return when one more worker computes: two texts that wait together would be joined, for one worker."""
        before = len(begun)
        executor.submit(predict, "repeat", text=["x" * 3000])
        wait_until(lambda: len(begun) > before, [])

    def results(function, elements):
        before = len(come)
        futures = [executor.submit(function, element) for element in elements]
        wait_until(lambda: len(come) == before + len(elements), [])
        is_over.set()
        return [future.exception() or future.result() for future in futures]

    monkeypatch.setattr(Version, "run", held)
    monkeypatch.setattr(Batcher, "compute", lambda *arguments: come.append(arguments) or compute(*arguments))
    with concurrent.futures.ThreadPoolExecutor(32) as executor:
        for _ in range(OPTIONS.workers):
            occupy_one(executor)
        yield results
        is_over.set()


@pytest.mark.slow
def test_waiting_requests_are_computed_together_and_each_gets_its_own_rows(predict, together):
    def ask(number):
        return predict("repeat", text=[f"{number}-{row}" for row in range(1 + number % 3)], times=[1 + number % 2])[0]

    answers = together(ask, range(9))
    for number, answer in enumerate(answers):
        expected = [f"{number}-{row}" * (1 + number % 2) for row in range(1 + number % 3)]
        assert answer["repeated"] == [text.encode() for text in expected]
    assert max(rows for answer in answers for rows in answer["rows"]) > 2  # the size of a batch that was joined
    assert max(rows for answer in answers for rows in answer["rows"]) <= OPTIONS.batch_rows


@pytest.mark.slow
def test_a_request_that_the_graph_refuses_does_not_spoil_the_others(predict, together):
    def ask(number):
        return predict("repeat", text=[str(number)], times=[0 if number == 5 else 1])[0]

    answers = together(ask, range(8))
    assert answers.pop(5).code() is grpc.StatusCode.INVALID_ARGUMENT
    assert [answer["repeated"] for answer in answers] == [[str(number).encode()] for number in (0, 1, 2, 3, 4, 6, 7)]
    assert sorted(rows for answer in answers for rows in answer["rows"]) == [1, 2, 2, 4, 4, 4, 4]  # halves of halves


@pytest.mark.slow
def test_texts_of_other_lengths_are_not_computed_together(predict, together):
    texts = ["short", "y" * 2000, "short too"]
    answers = together(lambda text: predict("repeat", text=[text])[0], texts)
    assert [answer["rows"] for answer in answers] == [[2], [1], [2]]


@pytest.mark.slow
def test_an_answer_does_not_show_who_shared_the_batch(predict, together):
    """`words` is padded to the longest line of a batch, so requests for it are computed alone."""
    texts = ["one", "one two", "one two three"]
    answers = together(lambda text: predict("words", text=[text])[0]["words"], texts)
    assert answers == [[[word.encode() for word in text.split()]] for text in texts]


def test_a_long_request_is_computed_in_parts(server, predict):
    texts = [str(number) for number in range(40)]
    answer = predict("repeat", text=texts, times=[1])[0]
    assert answer["repeated"] == [text.encode() for text in texts] and set(answer["rows"]) == {OPTIONS.batch_rows}
    assert post(server, {"inputs": texts}).json()["outputs"]["translation"] == texts


@pytest.mark.slow
def test_beyond_the_queue_requests_are_refused_at_once(server, predict, together):
    def ask(number):
        if number % 2:
            return post(server, {"signature_name": "repeat", "inputs": {"text": ["a"] * 4}}).status_code
        try:
            predict("repeat", text=["a"] * 4)
            return 200
        except grpc.RpcError as error:
            return error.code()

    answers = together(ask, range(24))
    assert set(answers) == {200, 503, grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert answers.count(200) == 5  # 20 rows wait


@pytest.mark.slow
def test_a_request_that_nobody_waits_for_leaves_the_queue(server, predict, together):
    with pytest.raises(requests.exceptions.ReadTimeout):
        requests.post(f"{server.url}:predict", json={"inputs": ["gone"] * 20}, timeout=0.2)
    time.sleep(0.2)
    [answer] = together(lambda number: predict(text=["a"] * 20)[0], [0])
    assert answer["translation"] == [b"a"] * 20


def test_an_error_of_the_server_is_logged_on_one_line_and_not_told(server, predict, monkeypatch, caplog):
    def fail(*arguments):
        raise ValueError("secret\nWARNING forged \x1b[31m")

    monkeypatch.setattr(json_codec.JsonCodec, "write", fail)
    monkeypatch.setattr(protobuf_codec.ProtobufCodec, "write", fail)
    response = post(server, {"inputs": ["a"]})
    assert response.status_code == 500 and "secret" not in response.text
    with pytest.raises(grpc.RpcError) as error:
        predict(text=["a"])
    assert error.value.code().name == "INTERNAL" and "secret" not in error.value.details()
    messages = [record.getMessage() for record in caplog.records if "ValueError at" in record.getMessage()]
    assert len(messages) == 2 and all(message.isprintable() for message in messages)
    assert "secret" not in caplog.text  # a message may have the text of a request
    monkeypatch.undo()
    assert post(server, {"inputs": ["a"]}).status_code == 200
