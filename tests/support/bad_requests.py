"""Requests that are wrong in every way that hypothesis draws; raw bytes; a client beside them.

The model is the one of tests/support/echo.py.
"""

import json
import math
import os
import pathlib
import socket
import threading
import time

from hypothesis import strategies as st
from tensorflow_serving.apis import predict_pb2

from export.client.client import ServingClient
from keras_transformer.search.options import OPTIONS

REQUESTS = int(os.environ.get("ATTACK_REQUESTS", "300"))  # how many to send, about, in all tests together


class Bystander:
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


def resident():
    """Bytes of memory that this process holds; 0 where the system does not tell."""
    statistics = pathlib.Path("/proc/self/statm")
    return int(statistics.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statistics.exists() else 0


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


# what a line may be

LINES = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace")),
    st.sampled_from(
        [
            b"\0",
            b"\xff" * 1000,
            b"\xed\xa0\x80",
            b"\xc0\x80",
            b"\xf5\x80\x80\x80",
            "\u202e\ufeff".encode(),
            b" \t\r\n",
            b"\r\n" * 50,
            b"a\0b",
            "e\u0301".encode() * 500,
            "\U0001f469\u200d".encode() * 100,
            b"x" * 100_000,
        ]
    ),
)


# heads of HTTP requests: hosts, origins, offers of other protocols, lengths that may be read in two ways

HOSTS = st.one_of(
    st.sampled_from(
        [
            b"localhost",
            b"127.0.0.1",
            b"[::1]:1",
            b"evil.example",
            b"localhost.evil.example",
            b"127.0.0.1@evil.example",
            b"",
            b"[",
            b"localhost:99999",
            b"\xff\xfe",
            b"a" * 5000,
            b"localhost, evil.example",
            b"localhost\x00",
        ]
    ),
    st.binary(max_size=20).map(lambda host: host.replace(b"\r", b"").replace(b"\n", b"")),
)
HEADS = st.lists(
    st.one_of(
        HOSTS.map(lambda host: b"Host: " + host),
        HOSTS.map(lambda host: b"Origin: http://" + host),
        st.sampled_from(
            [
                b"Connection: Upgrade",
                b"Connection: Upgrade, HTTP2-Settings",
                b"Upgrade: h2c",
                b"Upgrade: websocket",
                b"HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA",
                b"Content-Length: 17",
                b"Content-Length: 0",
                b"Transfer-Encoding: chunked",
                b"Content-Encoding: gzip",
                b"Content-Encoding: br",
                b"Expect: 100-continue",
                b"Connection: close",
                b"Content-Length : 1",
                b" Content-Length: 5",
                b"Transfer-Encoding: identity, chunked",
            ]
        ),
    ),
    max_size=6,
)


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


PATHS = st.one_of(
    st.text(max_size=40),
    st.binary(max_size=40),
    st.sampled_from(
        [
            "/../../etc/passwd",
            "/v1/models/%00",
            "/v1/models/echo/versions/99999999999999999999",
            "/v1/models/echo:",
            "/v1/models/echo/versions/-1",
            "/v1/models/echo/metadata/",
            "/v1/models/echo:predict:predict",
            "//",
            "/%ff%fe",
            "/v1/models/echo/labels/x:predict",
            "/v1/models/" + "a" * 3000,
            "/\r\nX: y",
            "*",
            "http://else/v1/models/echo",
        ]
    ),
)


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


# options of the signature translate

NUMBERS = st.one_of(
    st.integers(-2, 9), st.integers(-(2**31), 2**31 - 1), st.floats(-1, 2, width=32), st.floats(width=32)
)
OPTION_NAMES = (
    *(name for name, option in OPTIONS.items() if not option.not_served),
    "target_prefix",
    "required",
    "forbidden",
)
JSON_OPTIONS = st.dictionaries(
    st.sampled_from([*OPTION_NAMES, "beam", ""]),
    st.one_of(NUMBERS, st.text(max_size=9), st.none(), st.booleans(), st.lists(NUMBERS, max_size=3)),
    max_size=4,
)


@st.composite
def option_tensors(draw):
    """A request to the graph itself: lines, and options of any type, shape and value."""
    request = {"text": draw(tensors(st.just("string"), [draw(st.integers(0, 3))]))}
    for name in draw(st.lists(st.sampled_from(OPTION_NAMES), max_size=4, unique=True)):
        kinds = st.sampled_from(["int32", "float32", "int32", "float32", "string", "int64", "float64", "bool"])
        request[name] = draw(tensors(kinds, draw(st.lists(st.integers(0, 3), max_size=2))))
    if draw(st.integers(0, 9)) == 0:
        request["text"] = draw(tensors(st.sampled_from(["int32", "string"]), draw(st.lists(st.integers(0, 2)))))
    return request


@st.composite
def tensors(draw, kinds, shape):
    """A tensor as export/certificate/c_runtime.py reads it."""
    kind, size = draw(kinds), math.prod(shape)
    whole = st.integers(-2, 9) | st.integers(-(2**31), 2**31 - 1)
    values = {
        "string": LINES.map(lambda line: line[:200].decode("utf-8", "surrogateescape")),
        "bool": st.booleans(),
        "int32": whole,
        "int64": whole,
    }.get(kind, st.floats(-1, 2, width=32) | st.floats(width=32))
    return {"type": kind, "shape": shape, "values": draw(st.lists(values, min_size=size, max_size=size))}
