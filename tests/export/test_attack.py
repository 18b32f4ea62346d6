"""Bad requests to a local server, by REST and gRPC: each gets a right answer or a client's error.

`make attack` sends 10,000 of them; without ATTACK_REQUESTS it is a few hundred.
"""

import base64
import gc
import json
import re

import grpc
import pytest
import requests
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensorflow_serving.apis import predict_pb2

from export.client.client import ServingClient
from export.server.options import ServerOptions
from export.server.process import local_server
from keras_transformer.pieces.batching import BYTES_PER_TOKEN
from keras_transformer.pieces.normalization import is_blank
from tests.support.bad_requests import BODIES, HEADS, LINES, MESSAGES, PATHS, REQUESTS, Bystander, resident, send
from tests.support.exports import write_version
from tests.support.runs import SENTENCES, random_run

pytestmark = pytest.mark.release

PROPERTIES = 6  # tests below that draw requests
OPTIONS = ServerOptions(port=0, grpc_port=0, request_rows=64, body_bytes=1 << 20, deadline=30.0, header_seconds=1.0)
CLIENT_ERRORS = {400, 404, 405, 413}
GRPC_ERRORS = {"INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION"}
LONG_LINES = ["x" * (1 << 20), "word " * (1 << 17), "\0" * (1 << 19)]
MOST_TOKENS = 24
MOST_BYTES = MOST_TOKENS * BYTES_PER_TOKEN  # of a line that the graph reads
LEAK = 300 << 20  # bytes: what the process may grow by, whatever the number of requests


def attack(function):
    """Draw each test's share of the requests; a server may be slow on a busy machine, so there is no time limit."""
    return settings(
        max_examples=max(10, REQUESTS // PROPERTIES),
        deadline=None,
        derandomize=REQUESTS <= 1000,
        database=None,
        suppress_health_check=list(HealthCheck),
    )(function)


@pytest.fixture(scope="module")
def server(echo_folder):
    """A server of a model that returns its input."""
    with local_server(echo_folder, OPTIONS) as address, Bystander(address):
        yield address


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    """A server of a Transformer with random weights."""
    folder = tmp_path_factory.mktemp("served")
    write_version(random_run(folder / "run"), folder / "model" / "1", max_source_tokens=MOST_TOKENS)
    with local_server(folder / "model", OPTIONS) as address:
        yield address


@pytest.fixture(scope="module", autouse=True)
def nothing_leaks(server, translator):
    """Memory grows with the largest request, not with the number of requests."""
    for address in (server, translator):
        for line in LONG_LINES:
            requests.post(f"{address.url}:predict", json={"inputs": [line[: 1 << 19]]})
        requests.post(f"{address.url}:predict", json={"inputs": ["word " * 200] * OPTIONS.request_rows})
    before = resident()
    yield
    gc.collect()
    assert resident() - before < LEAK


def assert_answered(response):
    """Check that an answer is right, or a client's error, and JSON."""
    content = response.json()
    if response.status_code == 200:
        return content
    assert response.status_code in CLIENT_ERRORS, (response.status_code, content)
    assert set(content) == {"error"} and content["error"] and "\n" not in content["error"]
    return None


@given(st.lists(LINES, max_size=8))
@attack
def test_any_bytes_are_text(server, lines):
    inputs = [{"b64": base64.b64encode(line).decode()} for line in lines]
    content = assert_answered(requests.post(f"{server.url}:predict", json={"inputs": inputs}))
    expected = [line.decode("utf-8", "replace") for line in lines]
    assert content["outputs"]["translation"] == expected
    assert content["outputs"]["score"] == [-len(line) for line in lines]


@pytest.mark.parametrize("count", [0, 1, 64])
def test_a_transformer_translates_any_bytes_beside_a_sentence(translator, count):
    lines = LINES.filter(lambda line: len(line) <= 1000)
    examples = []

    @given(st.lists(lines, min_size=count, max_size=count))
    @settings(
        max_examples=max(2, REQUESTS // 500), deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    def collect(drawn):
        examples.append(drawn)

    collect()
    client = ServingClient(translator.url)
    alone = client.translate([SENTENCES[0]])[0]
    for drawn in examples:
        inputs = [{"b64": base64.b64encode(line).decode()} for line in drawn[:63]] + [SENTENCES[0]]
        content = assert_answered(requests.post(f"{translator.url}:predict", json={"inputs": inputs}))
        outputs = content["outputs"]
        assert outputs["translation"][-1] == alone.text
        assert outputs["score"][-1] == pytest.approx(alone.score, abs=1e-4)
        assert len(outputs["translation"]) == len(inputs) and all(score <= 0 for score in outputs["score"])


@pytest.mark.parametrize("line", LONG_LINES, ids=["letters", "words", "zeros"])
def test_a_line_of_a_megabyte_is_too_long_or_cut(translator, line):
    """A body of more than `body_bytes` is refused. The beginning of any other line is translated."""
    for text in (line, line[: 1 << 19], line[: 1 << 17]):
        body = json.dumps({"inputs": [text, text[:MOST_BYTES]]})
        response = requests.post(f"{translator.url}:predict", data=body)
        assert response.status_code == (413 if len(body) > OPTIONS.body_bytes else 200)
        if content := assert_answered(response):
            long, beginning = content["outputs"]["translation"]
            assert long == beginning and (long == "") == is_blank(line)


def test_ten_thousand_lines_are_refused_and_as_many_as_allowed_are_not(translator):
    assert requests.post(f"{translator.url}:predict", json={"inputs": ["a"] * 10_000}).status_code == 400
    assert requests.post(f"{translator.url}:predict", json={"instances": [""] * 10_000}).status_code == 400
    content = assert_answered(requests.post(f"{translator.url}:predict", json={"inputs": ["a"] * OPTIONS.request_rows}))
    assert len(content["outputs"]["translation"]) == OPTIONS.request_rows


@given(BODIES)
@attack
def test_any_body_is_answered(server, body):
    assert_answered(requests.post(f"{server.url}:predict", data=body))


@given(PATHS, st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "CONNECT"]))
@attack
def test_any_path_is_answered(server, path, method):
    """Send the path as it is, without a client that would repair or refuse it; one may name another host."""
    raw = path if isinstance(path, bytes) else path.encode("utf-8", "replace")
    answer = send(server, method.encode() + b" " + raw + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    status = re.match(rb"HTTP/1\.1 (\d\d\d) ", answer)
    assert answer == b"" or (status and int(status[1]) in CLIENT_ERRORS | {200, 403}), answer[:200]


@given(HEADS, st.sampled_from([b'{"inputs": ["a"]}', b'11\r\n{"inputs": ["a"]}\r\n0\r\n\r\n', b""]))
@attack
def test_no_head_lets_a_body_be_a_request_or_another_site_ask(server, heads, body):
    """Behind the body is a request for a model that is not there. It may be answered, but a body of its own may not."""
    hidden = b"GET /v1/models/hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"
    length = b"Content-Length: %d" % len(hidden)
    request = b"POST /v1/models/echo:predict HTTP/1.1\r\n" + b"".join(head + b"\r\n" for head in heads)
    answer = send(server, request + b"\r\n" + body, half_close=True)
    statuses = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d\d\d) ", answer)]
    assert set(statuses) <= CLIENT_ERRORS | {100, 200, 403, 415, 501}, answer[:200]
    assert 200 not in statuses or not any(b"evil.example" in head.split(b"@")[0] for head in heads)
    if not any(b"Content-Length" in head or b"Transfer-Encoding" in head for head in heads):
        answer = send(server, request + length + b"\r\n\r\n" + hidden, half_close=True)
        assert b"hidden" not in answer


# gRPC


@pytest.fixture(scope="module")
def channel(server):
    with grpc.insecure_channel(f"{server.host}:{server.grpc_port}") as channel:
        yield channel


@given(MESSAGES)
@attack
def test_any_message_is_answered(channel, message):
    call = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
    try:
        answer = call(message, timeout=30)
    except grpc.RpcError as error:
        assert error.code().name in GRPC_ERRORS, (error.code(), error.details())
        assert error.details() and "\n" not in error.details()
    else:
        predict_pb2.PredictResponse.FromString(answer)


@given(st.sampled_from(["GetModelMetadata", "GetModelStatus", "Classify", "x"]), st.binary(max_size=100))
@attack
def test_other_calls_are_answered(channel, method, message):
    service = "ModelService" if method == "GetModelStatus" else "PredictionService"
    try:
        channel.unary_unary(f"/tensorflow.serving.{service}/{method}")(message, timeout=30)
    except grpc.RpcError as error:
        assert error.code().name in GRPC_ERRORS | {"UNIMPLEMENTED"}, (error.code(), error.details())


def test_a_message_that_is_too_big_is_refused(channel):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "echo"
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(["x" * (OPTIONS.body_bytes * 2)]))
    with pytest.raises(grpc.RpcError) as error:
        channel.unary_unary("/tensorflow.serving.PredictionService/Predict")(request.SerializeToString(), timeout=30)
    assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
