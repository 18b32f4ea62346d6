"""Clients that hold what they began: the server's memory stays bounded, and it answers others at once.

The server runs in a process of its own, with the limits of `keras-transformer serve`, except in the last test.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import time
from types import SimpleNamespace

import grpc
import pytest
import requests
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2

from export.client.client import ServingClient
from export.client.transports import ClientError
from export.server.bounds import WHOLE_TEXTS
from export.server.options import ServerOptions
from keras_transformer.text.formats.docx_archive import TAGS_PER_BYTE
from tests.support.docx_files import archive, docx, members_of, p, r
from tests.support.held import Probe, held_bodies, held_streams, unread_answers, unread_call
from tests.support.languages import write_pair
from tests.support.processes import start_fork, wait_until
from tests.support.servers import serving

pytestmark = pytest.mark.release

BODY = ServerOptions().body_bytes
BOUND = ServerOptions().bytes_in_flight
BESIDE = 96 << 20  # bytes that a process may hold beside what it counts: buffers, copies, a heap with holes
SLOWEST = 0.2  # seconds: a readiness probe waits for 1 or 2


@contextlib.contextmanager
def process_of(folder, name, log, *options):
    """Within, a process serves the model of a folder."""
    process = start_fork("-m", "export.serve", folder, "--port", 0, "--grpc-port", 0, *options, log=log)
    try:
        wait_until(lambda: "gRPC" in log.read_text(), [process])
        port, grpc_port = map(int, re.findall(rf"://[^:/]+:(\d+)/(?:v1/models/)?{name}", log.read_text()))
        server = SimpleNamespace(host="127.0.0.1", port=port, grpc_port=grpc_port, name=name, pid=process.pid)
        server.url = f"http://127.0.0.1:{port}/v1/models/{name}"
        server.grpc_url = f"grpc://127.0.0.1:{grpc_port}/{name}"
        yield server
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.fixture
def server(request, echo_folder, tmp_path):
    """A server that has answered a big request, so that memory which stays is held already.

    A test may give it other options.
    """
    with process_of(echo_folder, "echo", tmp_path / "server.log", *getattr(request, "param", [])) as server:
        for url in (server.url, server.grpc_url):
            ServingClient(url).translate(["x" * (BODY // 2)])
        yield server


def resident(server):
    return int(pathlib.Path(f"/proc/{server.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def assert_bounded(what, server, attack, allowed=SLOWEST, beside=BESIDE):
    """Attack a server, and check what the process gains, and the slowest answer of a probe beside the attack.

    attack: takes an ExitStack that holds what stays open until the memory was read. What is slow is done again, three
        times in all: a busy machine is slow once, and a server that is kept from answering always.
    """
    before, slowest = resident(server), []
    while not slowest or slowest[-1] >= allowed:
        with Probe(server.url) as probe, contextlib.ExitStack() as held:
            attack(held)
            gained = resident(server) - before
        slowest.append(probe.slowest)
        milliseconds = " ".join(f"{1000 * seconds:.0f}" for seconds in slowest)
        print(f"\n{what}: {before >> 20} MiB before, +{gained >> 20} MiB; slowest status {milliseconds} ms")
        assert gained < BOUND + beside and probe.statuses == {200}
        assert slowest[-1] < allowed or len(slowest) < 3


def answers(server):
    return all(ServingClient(url).translate(["a"])[0].text == "a" for url in (server.url, server.grpc_url))


def test_bodies_without_an_end(server):
    def attack(held):
        held.enter_context(held_bodies(server, 200, BODY))
        time.sleep(1.0)
        assert answers(server)

    assert_bounded("200 bodies", server, attack)


def test_streams_without_an_end(server):
    def attack(held):
        held.enter_context(held_streams(server, 80, BODY, seconds=8.0))
        assert answers(server)

    assert_bounded("80 streams", server, attack)


def big_answer(texts, times):
    return json.dumps({"signature_name": "repeat", "inputs": {"text": texts, "times": [times]}}).encode()


def test_answers_that_nobody_reads(server):
    body = big_answer(["x" * 1000] * 300, 100)  # 30 MB each

    def attack(held):
        held.enter_context(unread_answers(server, 20, body))
        time.sleep(8.0)
        assert answers(server)

    assert_bounded("20 unread answers", server, attack)


def test_answers_that_are_too_big(server):
    texts = ["x" * 1000] * 100

    def attack(held):
        for _ in range(5):
            response = requests.post(f"{server.url}:predict", data=big_answer(texts, 1000))
            assert response.status_code == 400 and "more than" in response.json()["error"]
            request = predict_pb2.PredictRequest(model_spec={"name": "echo", "signature_name": "repeat"})
            request.inputs["text"].CopyFrom(tf.make_tensor_proto(texts))
            request.inputs["times"].CopyFrom(tf.make_tensor_proto([1000]))
            with grpc.insecure_channel(f"{server.host}:{server.grpc_port}") as channel:
                with pytest.raises(grpc.RpcError) as error:
                    call = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
                    call(request.SerializeToString(), timeout=30)
            assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    assert_bounded("10 answers of 100 MB", server, attack)


@pytest.mark.parametrize("content", ["[],", '"",', "1,", "1.5e1,", '{"a":1},', '"\\u0041",'])
def test_bodies_that_take_long_to_read(server, content):
    body = b'{"inputs": [' + content.encode() * ((BODY - 20) // len(content)) + b"0]}"

    def attack(held):
        for _ in range(3):
            assert requests.post(f"{server.url}:predict", data=body).status_code == 400

    assert_bounded(f"bodies of {content}", server, attack)


def test_answers_that_are_read(server):
    body = big_answer([f"{'x' * 1000}"] * 30, 1000)  # 30 MB

    def attack(held):
        for _ in range(3):
            assert len(requests.post(f"{server.url}:predict", data=body).json()["outputs"]["repeated"]) == 30

    assert_bounded("3 answers of 30 MB", server, attack)


@pytest.mark.parametrize("server", [["--body-bytes", 40 << 20]], indirect=True)
@pytest.mark.parametrize("character", ["x", "\u00fc", '"', "\n", "\U0001f600"], ids=ascii)
def test_one_long_string_is_read_and_written_beside_others(server, character):
    text = character * (30_000_000 // len(json.dumps(character, ensure_ascii=False).encode()[1:-1]))
    body = json.dumps({"inputs": [text]}, ensure_ascii=False).encode()

    def attack(held):
        for _ in range(3):
            assert requests.post(f"{server.url}:predict", data=body).json()["outputs"]["translation"] == [text]

    assert_bounded(f"30 MB of {character!a}", server, attack)


@pytest.mark.parametrize("body", [p(r("a", "<w:b/>"), r("b")), p(r("a dog")), "<w:p/>"])
def test_documents_of_as_many_tags_as_they_may_have(tmp_path, body):
    write_pair(tmp_path / "pair" / "1", "en", "pl")
    room = WHOLE_TEXTS.each - 1_000
    members = members_of(docx(body * int(TAGS_PER_BYTE * room / body.count("<"))))
    noise = random.Random(1).randbytes(room - len(archive(members)))
    content = archive({**members, "word/media/b.png": noise})
    assert room <= len(content) <= WHOLE_TEXTS.each

    def ask():
        fields = {"source": "en", "target": "pl"}
        url = f"http://{server.host}:{server.port}/translate_file"
        return requests.post(url, fields, files={"file": ("a.docx", content)}, timeout=120).status_code

    def attack(held):
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            answers = [threads.submit(ask) for _ in range(4)]
        assert {answer.result() for answer in answers} <= {200, 400, 504}  # 400: of more sentences than it may have

    with process_of(tmp_path / "pair", "pair", tmp_path / "server.log") as server:
        assert_bounded(f"4 documents of {body[:20]}", server, attack, 5 * SLOWEST, 2 * BESIDE)  # three are read at once


@pytest.mark.parametrize("answers_pings", [True, False])
def test_answers_that_nobody_reads_are_held_for_a_while(echo_folder, answers_pings):
    """A program that has forgotten its calls loses them after two deadlines, one that hangs after two pings."""
    seconds = {"deadline": 5.0, "header_seconds": 60.0} if answers_pings else {"header_seconds": 3.0}
    inputs = {"text": ["x" * 1000], "times": [400]}  # 400 kB, where 64 kB come unasked

    def outcome():
        try:
            return ServingClient(server.url, attempts=1).predict(inputs, "repeat")["repeated"] == ["x" * 400_000]
        except ClientError as error:
            return error.code

    with serving(echo_folder, body_bytes=1 << 16, **seconds) as server:
        message = predict_pb2.PredictRequest(model_spec={"name": "echo", "signature_name": "repeat"})
        for name, value in inputs.items():
            message.inputs[name].CopyFrom(tf.make_tensor_proto(value))
        with contextlib.ExitStack() as stack:
            while outcome() != 503:  # until the bound is reached
                stack.enter_context(unread_call(server, message.SerializeToString(), answers_pings))
            wait_until(lambda: outcome() is True, [], pause=0.1)
