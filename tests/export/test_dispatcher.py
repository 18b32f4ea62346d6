"""Limits of time: a request that takes too long gets an error, and the server ends even if one is not answered."""

import asyncio
import concurrent.futures
import http.client
import json
import socket
import threading
import time
import types

import grpc
import pytest
import requests
import tensorflow as tf
from starlette.requests import Request
from tensorflow_serving.apis import predict_pb2

from export.server import grpc_api
from export.server.dispatcher import BIG, Dispatcher
from export.server.errors import RequestError
from export.server.exchange import body_of
from export.server.models import Models
from export.server.options import ServerOptions
from export.server.process import local_server
from export.server.rest_api import RestApi
from export.server.version import Version
from tests.support.servers import serving

OPTIONS = ServerOptions(port=0, grpc_port=0, workers=2, deadline=0.5)
ANY = Models([types.SimpleNamespace(name="any", status={})])
HELD = 20  # seconds: a limit that holds ends long before


@pytest.fixture(scope="module")
def server(echo_folder):
    with local_server(echo_folder, OPTIONS) as address:
        yield address


@pytest.fixture
def held(monkeypatch):
    """Let no batch be computed before the test ends. Returns an event that is set when the first batch begins."""
    begun, is_over, run = threading.Event(), threading.Event(), Version.run

    def wait(self, *arguments):
        begun.set()
        is_over.wait(HELD)
        return run(self, *arguments)

    monkeypatch.setattr(Version, "run", wait)
    yield begun
    is_over.set()


@pytest.mark.slow
def test_what_is_not_computed_within_the_deadline_is_given_up_whatever_the_client_allows(server, held):
    response = requests.post(f"{server.url}:predict", json={"inputs": ["a"]}, timeout=60)
    assert response.status_code == 504 and "no result within" in response.json()["error"]
    request = predict_pb2.PredictRequest()
    request.model_spec.name = server.name
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(["a"]))
    with grpc.insecure_channel(f"{server.host}:{server.grpc_port}") as channel:
        call = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
        with pytest.raises(grpc.RpcError) as error:
            call(request.SerializeToString(), timeout=60)
    assert error.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED and "no result within" in error.value.details()


@pytest.mark.slow
def test_a_body_that_does_not_arrive_within_the_deadline_is_not_waited_for(server):
    head = f"POST /v1/models/{server.name}:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
    with socket.create_connection((server.host, server.port), timeout=HELD) as connection:
        connection.sendall(head.encode() + b'{"inputs": ')
        response = http.client.HTTPResponse(connection)
        response.begin()
        assert response.status == 408 and response.getheader("connection") == "close"
        assert "within the deadline" in json.loads(response.read())["error"]


def test_a_body_in_drips_has_no_more_time():
    async def drip():
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b" ", "more_body": True}

    request = Request({"type": "http", "method": "POST", "headers": []}, drip)
    dispatcher = Dispatcher(None, OPTIONS)
    with pytest.raises(RequestError) as error, dispatcher.bytes_in_flight.share() as share:
        body = body_of(request, dispatcher.options.body_bytes, share, time.monotonic() + 0.1)
        asyncio.run(asyncio.wait_for(body, HELD))
    assert error.value.http_status == 408


@pytest.mark.parametrize(("of_client", "seconds"), [(None, 9.0), (60.0, 9.0), (5.0, 5.0)])
def test_a_grpc_call_has_the_time_of_the_server_or_of_the_client_whichever_is_less(of_client, seconds):
    received = []

    async def answer(request, share, until):
        received.append(until)
        return b""

    async def come(*arguments):
        return b""

    async def call():
        dispatcher, calls = Dispatcher(ANY, ServerOptions(deadline=9.0)), grpc_api.Calls(1)
        handler = grpc_api.method(dispatcher, calls, predict_pb2.PredictRequest, answer)
        await handler.stream_stream(None, context)

    context = types.SimpleNamespace(time_remaining=lambda: of_client, read=come, write=come)
    before = time.monotonic()
    asyncio.run(call())
    assert before + seconds <= received[0] <= time.monotonic() + seconds


def test_requests_in_flight_have_so_many_seconds_when_the_server_ends():
    async def drain(dispatcher):
        with dispatcher.request("REST"):
            return await asyncio.wait_for(dispatcher.drain(), HELD)

    dispatcher = Dispatcher(ANY, ServerOptions(drain_seconds=0.1))
    assert asyncio.run(drain(dispatcher)) is False  # one is left
    assert asyncio.run(dispatcher.drain()) is True


def test_a_server_that_ends_takes_no_request_and_waits_for_one_that_ends_in_time():
    """As a client sees it: what was asked before is answered."""

    async def main(dispatcher):
        with dispatcher.request("REST"):
            draining = asyncio.create_task(dispatcher.drain())
            await asyncio.sleep(0.03)
            for entrypoint in ("REST", "GRPC"):
                with pytest.raises(RequestError, match="shutting down"), dispatcher.request(entrypoint):
                    pass
            assert not draining.done() and dispatcher.in_flight == 1
        return await draining

    assert asyncio.run(main(Dispatcher(ANY, ServerOptions()))) is True


@pytest.mark.slow
def test_a_server_ends_although_a_request_takes_longer(echo_folder, held):
    with concurrent.futures.ThreadPoolExecutor(1) as client:
        with serving(echo_folder, workers=1, drain_seconds=0.2) as address:
            client.submit(requests.post, f"{address.url}:predict", json={"inputs": ["a"]}, timeout=60)
            assert held.wait(60)
            before = time.monotonic()
        assert time.monotonic() - before < 0.75 * HELD


def test_what_is_read_or_written_off_the_loop_has_no_more_time_than_the_request():
    is_over, dispatcher = threading.Event(), Dispatcher(None, OPTIONS)
    with pytest.raises(RequestError, match="could not be read or answered in time"):
        asyncio.run(dispatcher.off_the_loop(lambda: is_over.wait(HELD), BIG + 1, time.monotonic() + 0.05))
    is_over.set()
    assert asyncio.run(dispatcher.off_the_loop(lambda: "read", BIG + 1, time.monotonic() + HELD)) == "read"
    dispatcher.close()


def test_a_server_that_ends_has_no_status_by_rest():
    dispatcher = Dispatcher(ANY, OPTIONS)
    asyncio.run(dispatcher.drain())
    with pytest.raises(RequestError, match="shutting down") as error:
        RestApi(dispatcher).status("any", None)
    assert error.value.http_status == 503


def test_a_dispatcher_that_is_closed_waits_for_nothing_that_is_computed_and_begins_nothing_more():
    dispatcher, is_over = Dispatcher(ANY, ServerOptions(workers=1)), threading.Event()
    pools = (dispatcher._thread, dispatcher.batcher._pool)
    running = [pool.submit(is_over.wait, HELD) for pool in pools]
    waiting = [pool.submit(pytest.fail) for pool in pools]
    while not all(each.running() for each in running):
        time.sleep(0.001)
    dispatcher.close()
    assert all(each.running() for each in running) and all(each.cancelled() for each in waiting)
    is_over.set()
