"""Bad requests to a local server, by REST and gRPC: each gets a right answer or a client's error.

`make attack` sends 10,000 of them; without ATTACK_REQUESTS it is a few hundred.
"""

import base64
import gc
import http.client
import json
import os
import pathlib
import re
import socket
import threading
import time

import grpc
import pytest
import requests
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensorflow_serving.apis import predict_pb2

from export.client import ServingClient
from export.server.options import ServerOptions
from export.server.process import local_server
from tests.support.echo import write_echo
from tests.support.exports import write_version
from tests.support.runs import SENTENCES, random_run

REQUESTS = int(os.environ.get("ATTACK_REQUESTS", "300"))
PROPERTIES = 5  # tests below that draw requests
OPTIONS = ServerOptions(port=0, grpc_port=0, request_rows=64, body_bytes=1 << 20, deadline=30.0, header_seconds=1.0)
CLIENT_ERRORS = {400, 404, 405, 413}
GRPC_ERRORS = {"INVALID_ARGUMENT", "NOT_FOUND"}
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
def server(tmp_path_factory):
    """A server of a model that echoes."""
    folder = tmp_path_factory.mktemp("served") / "echo"
    write_echo(folder / "1")
    with local_server(folder, OPTIONS) as address, bystander(address):
        yield address


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    """A server of a Transformer with random weights."""
    folder = tmp_path_factory.mktemp("served")
    write_version(random_run(folder / "run"), folder / "model" / "1", max_source_tokens=24)
    with local_server(folder / "model", OPTIONS) as address:
        yield address


class bystander:
    """Within, another client asks all the time; at the end, each of its answers must have been its own."""

    def __init__(self, address):
        self.client, self.is_over, self.wrong, self.count = ServingClient(address.url), threading.Event(), [], 0
        self.thread = threading.Thread(target=self.ask)

    def ask(self):
        while not self.is_over.is_set():
            lines = [f"bystander {self.count} {row}" for row in range(3)]
            try:
                found = [translation.text for translation in self.client.translate(lines)]
            except Exception as error:
                found = error
            if found != lines:
                self.wrong.append((lines, found))
            self.count += 1
            time.sleep(0.01)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *exception):
        self.is_over.set()
        self.thread.join()
        assert self.wrong == [] and self.count


@pytest.fixture(scope="module", autouse=True)
def nothing_leaks(server):
    requests.post(f"{server.url}:predict", json={"inputs": ["x" * 500_000]})
    before = resident()
    yield
    gc.collect()
    assert resident() - before < LEAK


def resident():
    """Bytes of memory that this process holds; 0 where the system does not tell."""
    statistics = pathlib.Path("/proc/self/statm")
    return int(statistics.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statistics.exists() else 0


def assert_answered(response):
    """A right answer or a client's error, as JSON."""
    content = response.json()
    if response.status_code == 200:
        return content
    assert response.status_code in CLIENT_ERRORS, (response.status_code, content)
    assert set(content) == {"error"} and content["error"] and "\n" not in content["error"]
    return None


# what a line may be

LINES = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace")),
    st.sampled_from(
        [b"\0", b"\xff" * 1000, b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80", "\u202e\ufeff".encode(), b" \t\r\n",
         b"\r\n" * 50, b"a\0b", "e\u0301".encode() * 500, "\U0001f469\u200d".encode() * 100, b"x" * 100_000]
    ),
)  # fmt: skip


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


@pytest.mark.parametrize("line", ["x" * (1 << 20), "word " * (1 << 17), "\0" * (1 << 19)])
def test_a_line_of_a_megabyte_is_too_long_or_cut(translator, line):
    for text in (line, line[: 1 << 19]):
        response = requests.post(f"{translator.url}:predict", json={"inputs": [text]})
        assert assert_answered(response) is None or len(response.json()["outputs"]["translation"]) == 1


def test_ten_thousand_lines_are_refused_and_as_many_as_allowed_are_not(translator):
    assert requests.post(f"{translator.url}:predict", json={"inputs": ["a"] * 10_000}).status_code == 400
    assert requests.post(f"{translator.url}:predict", json={"instances": [""] * 10_000}).status_code == 400
    content = assert_answered(requests.post(f"{translator.url}:predict", json={"inputs": ["a"] * OPTIONS.request_rows}))
    assert len(content["outputs"]["translation"]) == OPTIONS.request_rows


# JSON

SIGNATURES = st.sampled_from(["", "serving_default", "words", "reduce", "none", "__saved_model_init_op", "\0", 3, None])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(["b64", "text", "pair", "x"]), inner),
    max_leaves=12,
)
CONTENTS = st.one_of(
    st.fixed_dictionaries(
        {}, optional={"signature_name": SIGNATURES, "instances": VALUES, "inputs": VALUES, "x": VALUES}
    ),
    st.builds(
        lambda name, value, signature: {"inputs": {name: value}, "signature_name": signature},
        st.sampled_from(["text", "pair", "is_sum", "x"]),
        VALUES,
        SIGNATURES,
    ),
    VALUES,
)


@st.composite
def damaged(draw, content):
    """Bytes with a few changed, left out or doubled."""
    body = bytearray(draw(content))
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, max(len(body) - 1, 0)))
        body[place : place + draw(st.integers(0, 3))] = draw(st.binary(max_size=4))
    return bytes(body)


BODIES = st.one_of(
    CONTENTS.map(lambda content: json.dumps(content).encode()),
    damaged(st.just(json.dumps({"signature_name": "words", "inputs": {"text": ["a b", "ü"]}}).encode())),
    st.binary(max_size=300),
    st.sampled_from([b"[" * 100_000, b'{"inputs":' * 5000, b'{"inputs": 1' + b"0" * 10_000 + b"}", b"\xef\xbb\xbf{}"]),
)


@given(BODIES)
@attack
def test_any_body_is_answered(server, body):
    assert_answered(requests.post(f"{server.url}:predict", data=body))


PATHS = st.one_of(
    st.text(max_size=40),
    st.binary(max_size=40),
    st.sampled_from(
        ["/../../etc/passwd", "/v1/models/%00", "/v1/models/echo/versions/99999999999999999999", "/v1/models/echo:",
         "/v1/models/echo/versions/-1", "/v1/models/echo/metadata/", "/v1/models/echo:predict:predict", "//", "/%ff%fe",
         "/v1/models/echo/labels/x:predict", "/v1/models/" + "a" * 3000, "/\r\nX: y", "*", "http://else/v1/models/echo"]
    ),
)  # fmt: skip


@given(PATHS, st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "CONNECT"]))
@attack
def test_any_path_is_answered(server, path, method):
    """The path is sent as it is: no client in between that would repair or refuse it."""
    raw = path if isinstance(path, bytes) else path.encode("utf-8", "replace")
    answer = send(server, method.encode() + b" " + raw + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    status = re.match(rb"HTTP/1\.1 (\d\d\d) ", answer)
    assert answer == b"" or (status and int(status[1]) in CLIENT_ERRORS | {200}), answer[:200]


def send(server, data, half_close=False):
    """Send raw bytes and return all that comes back until the server closes the connection."""
    received = b""
    with socket.create_connection((server.host, server.port), timeout=30) as connection:
        try:
            connection.sendall(data)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
            while chunk := connection.recv(1 << 16):
                received += chunk
        except ConnectionError:
            pass
    return received


# slow and half-closed connections

HEAD = b"POST /v1/models/echo:predict HTTP/1.1\r\nHost: x\r\n"
BODY = b'{"inputs": ["a"]}'


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GET",
        HEAD,
        HEAD + b"Content-Length: 17\r\n\r\n",
        HEAD + b"Content-Length: 17\r\n\r\n" + BODY[:5],
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n11\r\n" + BODY[:3],
        HEAD + b"Content-Length: 17\r\n\r\n" + BODY,
    ],
)
def test_a_half_closed_connection_ends(server, data):
    send(server, data, half_close=True)


@pytest.mark.parametrize(
    "data",
    [
        HEAD + b"Content-Length: -1\r\n\r\n" + BODY,
        HEAD + b"Content-Length: x\r\n\r\n" + BODY,
        HEAD + b"Content-Length: 17\r\nContent-Length: 18\r\n\r\n" + BODY,
        HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n" + BODY,
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + BODY,
        HEAD + b"Content-Length: 17\r\nTransfer-Encoding: chunked\r\n\r\n" + BODY,
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\0" * 100,
    ],
)
def test_what_is_no_http_is_refused(server, data):
    answer = send(server, data)
    assert answer == b"" or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 505")), answer[:100]


def test_headers_without_end_are_cut_off(server):
    """By their time, and by their size: many connections that never ask cannot use up the server."""
    assert send(server, HEAD + b"X: ") in (b"", b"Invalid HTTP request received.")
    assert not send(server, HEAD + b"X: " + b"a" * (1 << 20)).startswith(b"HTTP/1.1 200")
    assert not send(server, b"GET /" + b"a" * (1 << 20) + b" HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200")


def test_slow_connections_delay_nobody(server):
    slow = [socket.create_connection((server.host, server.port)) for _ in range(50)]
    try:
        for connection in slow:
            connection.sendall(HEAD + b"Content-Length: 17\r\n\r\n{")
        assert ServingClient(server.url).translate(["a"])[0].text == "a"
        for connection in slow[:5]:  # the rest of the body comes after all
            connection.sendall(BODY[1:])
            assert http_response(connection).status == 200
    finally:
        for connection in slow:
            connection.close()


def http_response(connection):
    response = http.client.HTTPResponse(connection)
    response.begin()
    response.read()
    return response


# gRPC


@st.composite
def predict_requests(draw):
    """PredictRequests with tensors of any type, shape and values, which need not fit each other."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = draw(st.sampled_from(["echo", "echo", "echo", "", "other", "e\0"]))
    request.model_spec.signature_name = draw(st.sampled_from(["", "words", "reduce", "none", "__saved_model_init_op"]))
    if draw(st.integers(0, 5)) == 0:
        request.model_spec.version.value = draw(st.integers(-(2**63), 2**63 - 1))
    if draw(st.integers(0, 5)) == 0:
        request.output_filter.append(draw(st.sampled_from(["translation", "words", "none", ""])))
    for _ in range(draw(st.integers(0, 3))):
        tensor = request.inputs[draw(st.sampled_from(["text", "text", "pair", "is_sum", "x", ""]))]
        tensor.dtype = draw(st.sampled_from([7, 7, 7, 1, 10, 0, 3, 9, 14, 19, 20, 21, 99, 101]))
        for size in draw(st.lists(st.sampled_from([0, 1, 2, 3, -1, 2**40, 2**62, -(2**63)]), max_size=3)):
            tensor.tensor_shape.dim.add(size=size)
        tensor.tensor_shape.unknown_rank = draw(st.integers(0, 9)) == 0
        tensor.string_val.extend(draw(st.lists(st.binary(max_size=20), max_size=3)))
        tensor.float_val.extend(draw(st.lists(st.floats(width=32), max_size=4)))
        tensor.tensor_content = draw(st.binary(max_size=16)) if draw(st.integers(0, 3)) == 0 else b""
    return request.SerializeToString()


MESSAGES = st.one_of(predict_requests(), damaged(predict_requests()), st.binary(max_size=200))


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
