"""Connections that are slow, half-closed or not HTTP end, and delay no other connection."""

import asyncio
import contextlib
import http.client
import json
import socket
import time
import types

import pytest
import requests

from export.client.client import ServingClient
from export.server.http_connection import PIPELINED, EndingTransport
from tests.support.bad_requests import Bystander, resident, send
from tests.support.servers import serving


@pytest.fixture(scope="module")
def server(echo_folder):
    with serving(echo_folder, body_bytes=1 << 20, header_seconds=1.0, idle_seconds=5.0) as address, Bystander(address):
        yield address


HEAD = b"POST /v1/models/echo:predict HTTP/1.1\r\nHost: localhost\r\n"
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
    received = send(server, data, half_close=True)  # raises TimeoutError if the server keeps the connection
    assert received == b"" or received.startswith(b"HTTP/1.1 ")


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


def test_a_path_that_is_too_long_is_refused_and_no_error_of_the_server(server, caplog):
    assert send(server, b"GET /" + b"a" * 65_600 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert caplog.text == ""


@pytest.mark.nightly
def test_headers_without_end_are_cut_off(server):
    """Headers are limited in time and size, so that many connections without a request cannot use up the server."""
    assert send(server, HEAD + b"X: ") in (b"", b"Invalid HTTP request received.")
    assert not send(server, HEAD + b"X: " + b"a" * (1 << 20)).startswith(b"HTTP/1.1 200")
    assert not send(server, b"GET /" + b"a" * (1 << 20) + b" HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200")


@pytest.mark.nightly
@pytest.mark.parametrize("rest", [BODY, b"\r\n"], ids=["body", "empty line"])
def test_a_connection_ends_that_falls_silent_after_its_answer(server, rest):
    with socket.create_connection((server.host, server.port), timeout=20) as connection:
        connection.sendall(b"POST /v1/models/none:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 17\r\n\r\n")
        assert http_response(connection).status == 404
        connection.sendall(rest)
        assert connection.recv(1) == b""  # raises TimeoutError if the server keeps the connection


@pytest.mark.parametrize(("model", "size", "status"), [(b"none", 3 << 16, 404), (b"echo", 3 << 20, 413)])
def test_who_is_refused_early_can_send_the_rest_of_the_body(server, model, size, status):
    """If a connection is closed while its client still sends, the answer is lost. The rest is not read as headers."""
    with socket.create_connection((server.host, server.port), timeout=20) as connection:
        head = b"POST /v1/models/%s:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (model, size)
        connection.sendall(head)
        assert http_response(connection).status == status
        connection.sendall(b" " * size)
        connection.sendall(HEAD + b"Content-Length: 17\r\n\r\n" + BODY)
        assert http_response(connection).status == 200


@pytest.mark.nightly
@pytest.mark.parametrize("close", [b"", b"Connection: close\r\n"])
def test_a_rest_of_a_body_in_drips_is_cut_off(server, close):
    head = b"POST /v1/models/none:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
    with socket.create_connection((server.host, server.port), timeout=20) as connection:
        connection.sendall(head + close + b"\r\n")
        assert http_response(connection).status == 404
        began = time.monotonic()
        with pytest.raises(ConnectionError):
            while time.monotonic() - began < 30:
                connection.sendall(b" ")
                time.sleep(0.2)


CLOSE, LENGTH, CHUNKED = b"Connection: close\r\n", b"Content-Length: %d\r\n", b"Transfer-Encoding: chunked\r\n"


@pytest.mark.parametrize("head", [HEAD + CLOSE + LENGTH, HEAD.replace(b"1.1", b"1.0") + LENGTH, HEAD + CLOSE + CHUNKED])
def test_who_wants_the_connection_closed_has_the_answer_too(server, head):
    part, is_chunked = b" " * (1 << 20), head.endswith(CHUNKED)
    with socket.create_connection((server.host, server.port), timeout=20) as connection:
        connection.sendall((head if is_chunked else head % (8 * len(part))) + b"\r\n")
        time.sleep(0.2)  # until the answer is there, as with a proxy that sends before it reads
        for _ in range(8):
            connection.sendall(b"%x\r\n%s\r\n" % (len(part), part) if is_chunked else part)
        connection.sendall(b"0\r\n\r\n" if is_chunked else b"")
        assert http_response(connection).status == 413
        assert connection.recv(1) == b""


def test_the_rest_of_a_body_and_other_requests_are_no_long_headers(server):
    rest, half, other = 100_000, len(HEAD) // 2, HEAD + b"Content-Length: 17\r\n\r\n" + BODY
    for _ in range(5):  # how much of it the server reads at once is chance
        with socket.create_connection((server.host, server.port), timeout=20) as connection:
            connection.sendall(HEAD.replace(b"echo", b"none") + b"Content-Length: %d\r\n\r\n" % rest)
            assert http_response(connection).status == 404
            connection.sendall(b" " * rest + other[:half])
            time.sleep(0.1)
            connection.sendall(other[half:])
            assert http_response(connection).status == 200


def test_a_hundred_requests_may_wait_for_their_answers_and_no_more(server):
    request = b"GET /v1/models/echo HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.create_connection((server.host, server.port), timeout=20) as connection:
        connection.sendall(request * PIPELINED)
        received = b""
        while received.count(b"HTTP/1.1 200") < PIPELINED:  # raises TimeoutError if one is missing
            received += connection.recv(1 << 16)
    answers = send(server, request * 10_000)  # and not until all are answered
    assert answers.count(b"HTTP/1.1 200") < 1_000


@pytest.mark.release
@pytest.mark.parametrize(("times", "requests_at_once"), [(2, 1), (35, 1), (35, 2)])  # 2: what waits is in the kernel
def test_a_client_that_does_not_read_its_answer_is_not_waited_for(server, times, requests_at_once):
    line = "x" * 200_000
    body = json.dumps({"signature_name": "repeat", "inputs": {"text": [line], "times": [times]}}).encode()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(20)
        connection.connect((server.host, server.port))
        connection.sendall((HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body) * requests_at_once)
        received, began = connection.recv(100), time.monotonic()
        time.sleep(4.0 if times == 35 else 0.0)
        try:
            while chunk := connection.recv(1 << 16):
                received += chunk
        except ConnectionResetError:
            pass
    assert received.startswith(b"HTTP/1.1 200")
    assert (len(received) < times * len(line)) == (times == 35)
    assert time.monotonic() - began < 15


@pytest.mark.nightly
@pytest.mark.parametrize("trailer", [b"a: b\r\n" * 10_000, b"X: " + b"a" * 60_000])
def test_trailers_without_end_are_cut_off(server, trailer):
    before = resident()
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
    with socket.create_connection((server.host, server.port), timeout=20) as connection:
        connection.sendall(head)
        with pytest.raises(ConnectionError):
            for number in range(1_000):
                connection.sendall(trailer if number == 0 or b"\r" in trailer else trailer[3:])
    assert resident() - before < 100 << 20


def test_trailers_are_read_and_dropped(server):
    body = b"%x\r\n%s\r\n0\r\nX-Sum: 1\r\n\r\n" % (len(BODY), BODY)
    with socket.create_connection((server.host, server.port), timeout=20) as connection:
        for _ in range(2):
            connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + body)
            assert http_response(connection).status == 200


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


def test_a_body_without_a_length_is_limited_too(server):
    response = requests.post(f"{server.url}:predict", data=iter([b" " * (1 << 20), b'{"inputs": ["a"]}']))
    assert response.status_code == 413 and "1048576" in response.json()["error"]
    assert requests.post(f"{server.url}:predict", data=iter([b'{"inputs":', b' ["a"]}'])).status_code == 200


@pytest.fixture
def two(echo_folder):
    """A server that serves two connections at the same time."""
    with serving(echo_folder, connections=2, header_seconds=60.0) as address:
        yield address


@contextlib.contextmanager
def connections(server, count):
    with contextlib.ExitStack() as stack:
        address = (server.host, server.port)
        yield [stack.enter_context(socket.create_connection(address, timeout=20)) for _ in range(count)]


GET = b"GET /v1/models/echo HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_the_connection_that_is_idle_for_longest_makes_room_for_a_new_one(two):
    with connections(two, 2) as (second, first):
        for connection in (first, second, first, second):  # the order of the last answers counts
            connection.sendall(GET)
            assert http_response(connection).status == 200
        assert requests.get(two.url).status_code == 200
        assert first.recv(1) == b""
        second.sendall(GET)
        assert http_response(second).status == 200


def test_while_none_is_idle_only_the_new_connection_is_refused(two):
    with connections(two, 3) as (first, second, silent):  # the third asks nothing
        for connection in (first, second):
            connection.sendall(HEAD + b"Content-Length: 17\r\n\r\n{")
        response = requests.get(two.url)
        assert response.status_code == 503 and set(response.json()) == {"error"}
        assert (response.headers["connection"], response.headers["retry-after"]) == ("close", "1")
        for connection in (first, second):
            connection.sendall(BODY[1:])
            assert http_response(connection).status == 200
        silent.sendall(GET)
        assert http_response(silent).status == 503 and silent.recv(1) == b""
    assert requests.get(two.url).status_code == 200


def test_who_waits_for_the_end_of_a_refused_connection_need_not_send_the_rest_of_the_body(two):
    """Its headers may take a minute; that time is not waited for."""
    with connections(two, 1) as [connection]:
        connection.sendall(HEAD.replace(b"echo", b"none") + CLOSE + b"Content-Length: 1000\r\n\r\n")
        assert http_response(connection).status == 404
        assert connection.recv(1) == b""


def test_a_request_that_ends_the_connection_is_answered_whatever_follows_it(server):
    answer = send(server, GET.replace(b"Host", b"Connection: close\r\nHost") + GET)
    assert answer.count(b"HTTP/1.1 200") == answer.count(b"HTTP/1.1 ") == 1


class Wire:
    """A transport that notes what is written, and that it is closed."""

    def __init__(self):
        self.noted = []

    def write(self, data):
        self.noted.append(data)

    def close(self):
        self.noted.append("closed")


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ([b"head", b"body"], [b"headbody"]),
        ([b"head"], [b"head"]),
        ([b"head", b"one", b"two"], [b"headone", b"two"]),
        ([b"head", b"x" * (1 << 17)], [b"head" + b"x" * (1 << 17)]),
        ([b"x" * (1 << 17), b"y"], [b"x" * (1 << 17), b"y"]),
        ([b"head", "close"], [b"head", "closed"]),
    ],
)
def test_an_answer_is_written_together_in_its_order_and_in_this_turn_of_the_event_loop(written, sent):
    async def main():
        wire, loop = Wire(), asyncio.get_running_loop()
        connection = types.SimpleNamespace(loop=loop)
        transport = EndingTransport(wire, connection)
        connection.end = lambda: (transport.flush(), wire.close())
        for each in written:
            transport.close() if each == "close" else transport.write(each)
        await asyncio.sleep(0)
        return wire.noted

    assert asyncio.run(main()) == sent
