"""grpc.health.v1 of a local server, and the status: what a probe learns, and that nobody keeps it from its answer."""

import asyncio
import contextlib
import threading
import time

import grpc
import numpy as np
import pytest
import requests
import tensorflow as tf
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from export.client.access import Access
from export.client.client import ServingClient
from export.server.dispatcher import BIG, STILL, Dispatcher
from export.server.errors import RequestError
from export.server.health import Health
from export.server.models import Models
from export.server.options import ServerOptions
from export.server.signature import Signature, Tensor
from tests.support.held import held_calls
from tests.support.servers import serving

SERVING, NOT_SERVING = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING
OPTIONS = ServerOptions(port=0, grpc_port=0)
TEXT = {"text": Tensor("text:0", tf.string, (None,))}
SIGNATURE = Signature("echo", TEXT, TEXT, {})
PREDICT, CHECK, WATCH = (
    "/tensorflow.serving.PredictionService/Predict",
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/Watch",
)


def texts(line):
    return {"text": np.array([line], object)}


def check(address, service="", seconds=30.0):
    with grpc.insecure_channel(f"{address.host}:{address.grpc_port}") as channel:
        return HealthStub(channel).Check(HealthCheckRequest(service=service), timeout=seconds).status


@pytest.fixture(scope="module")
def keyed(echo_folder, tmp_path_factory):
    """A server that wants an API key, and a client that has it."""
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text("a-key")
    with serving(echo_folder, api_key_file=keys, connections=200) as address:
        yield address, ServingClient(address.grpc_url, deadline=10.0, attempts=1, access=Access(api_key_file=keys))


def test_check_answers_for_each_service_and_watch_is_not_implemented(keyed):
    address, _ = keyed
    for name in ("", "tensorflow.serving.PredictionService", "tensorflow.serving.ModelService"):
        assert check(address, name) == SERVING
    with grpc.insecure_channel(f"{address.host}:{address.grpc_port}") as channel:
        for code, call in [
            ("NOT_FOUND", lambda: HealthStub(channel).Check(HealthCheckRequest(service="x" * 9999), timeout=30)),
            ("UNIMPLEMENTED", lambda: next(HealthStub(channel).Watch(HealthCheckRequest(), timeout=30))),
            ("INVALID_ARGUMENT", lambda: channel.unary_unary(CHECK)(b"\xff", timeout=30)),
        ]:
            with pytest.raises(grpc.RpcError) as error:
                call()
            assert error.value.code().name == code and len(error.value.details()) < 200


@pytest.mark.slow
@pytest.mark.parametrize("message", [None, b""], ids=["no message", "no window"])
@pytest.mark.parametrize("method", [PREDICT, CHECK, WATCH])
def test_who_has_no_key_shuts_nobody_out(keyed, method, message):
    """Over all calls that the server answers at once, on few connections: without an end, or without an answer."""
    address, client = keyed
    with held_calls(address, method, connections=4, count=100, message=message):
        begun = time.monotonic()
        assert [one.text for one in client.translate(["a"])] == ["a"]
        assert check(address, seconds=5.0) == SERVING and requests.get(address.url, timeout=5).status_code == 200
        assert time.monotonic() - begun < 5.0


@pytest.mark.slow
def test_one_connection_has_a_part_of_the_calls(echo_folder):
    """Here nobody needs a key, and a client holds as many calls as it can."""
    with serving(echo_folder, connections=100) as address:
        with held_calls(address, PREDICT, connections=1, count=300):
            client = ServingClient(address.grpc_url, deadline=10.0, attempts=1)
            assert [one.text for one in client.translate(["a"])] == ["a"]


@pytest.mark.slow
@pytest.mark.parametrize("method", [CHECK, WATCH, PREDICT])
def test_a_server_ends_whoever_takes_no_answer(echo_folder, method):
    with contextlib.ExitStack() as held:
        with serving(echo_folder, drain_seconds=1.0) as address:
            held.enter_context(held_calls(address, method, connections=1, count=3, message=b""))
            begun = time.monotonic()
        assert time.monotonic() - begun < 15.0  # 1 second of drain, 3 of the end, and what a busy machine adds


def answer_of(health, *bodies):
    """What `Check` answers to messages: a status, or the code of why there is none."""
    answers = []

    class Context:
        def __init__(self, body):
            self.body = body

        async def read(self):
            await asyncio.sleep(60 if self.body is None else 0)
            return self.body

        async def write(self, answer):
            answers.append(HealthCheckResponse.FromString(answer).status)

        async def abort(self, code, message):
            answers.append(code.name)

    async def main():
        calls = [asyncio.ensure_future(health._check(None, Context(body))) for body in bodies]
        await asyncio.gather(*calls)

    asyncio.run(main())
    return answers


def test_health_ends_before_the_requests_in_flight_do():
    dispatcher = Dispatcher(Models([]), OPTIONS)
    health = Health(dispatcher.is_well, seconds=5.0, most=2)
    assert answer_of(health, b"") == [SERVING]
    asyncio.run(dispatcher.drain())
    assert answer_of(health, b"") == [NOT_SERVING]
    dispatcher.close()


def test_of_checks_that_wait_for_their_message_the_oldest_gives_way():
    health = Health(lambda: True, seconds=0.2, most=2)
    assert sorted(map(str, answer_of(health, None, None, b""))) == [str(SERVING), *["DEADLINE_EXCEEDED"] * 2]
    assert health._waiting == {}


def test_the_one_that_gives_way_does_so_at_once():
    begun = time.monotonic()
    answers = answer_of(Health(lambda: True, seconds=10.0, most=1), None, b"")
    assert sorted(map(str, answers)) == [str(SERVING), "DEADLINE_EXCEEDED"] and time.monotonic() - begun < 10.0


def test_a_server_whose_threads_stand_still_is_not_well():
    """One that moves is: a single batch that takes long is none."""
    options, over = ServerOptions(workers=2, deadline=0.05), threading.Event()
    still = 1.5 * STILL * options.deadline
    dispatcher = Dispatcher(Models([]), options)

    class Stuck:
        model, number = "stuck", 1

        def run(self, signature, outputs, inputs):
            over.wait(60)
            return inputs

    async def main():
        computing = [
            asyncio.ensure_future(dispatcher.batcher.compute(Stuck(), SIGNATURE, ("text",), texts(b"a"), 60.0))
            for _ in range(3)
        ]
        found = []
        for _ in range(3):
            await asyncio.sleep(0)
            found.append(dispatcher.is_well())
        await asyncio.sleep(still)
        found.append(dispatcher.is_well())
        with pytest.raises(RequestError, match="start this server again"):
            dispatcher.refuse_unless_well()
        over.set()
        await asyncio.gather(*computing)
        return [*found, dispatcher.is_well()]

    assert asyncio.run(main()) == [True, True, True, False, True]
    over.clear()

    async def read():
        with pytest.raises(RequestError, match="in time"):
            await dispatcher.off_the_loop(lambda: over.wait(60), BIG + 1, time.monotonic() + still)
        found = dispatcher.is_well()
        over.set()
        await asyncio.sleep(0.1)
        return found, dispatcher.is_well()

    assert asyncio.run(read()) == (False, True)
    dispatcher.close()
