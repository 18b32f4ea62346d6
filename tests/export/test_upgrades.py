"""A request that offers another protocol is answered as if it offered none, and its body is never the next request."""

import http.client
import json
import re
import socket

import pytest

from tests.support.bad_requests import send
from tests.support.servers import serving


@pytest.fixture(scope="module")
def server(echo_folder):
    with serving(echo_folder, header_seconds=1.0) as address:
        yield address


H2C = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAA\r\n"
WEBSOCKET = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n"
OTHER = b"upgrade: TLS/1.0, h2c\r\nconnection: keep-alive\r\nConnection: upgrade\r\n"
OFFERS = pytest.mark.parametrize("offer", [H2C, WEBSOCKET, OTHER], ids=["h2c", "websocket", "other"])
BODY = b'{"inputs": ["a"]}'
HIDDEN = b"GET /v1/models/hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"  # a body that looks like a request


def head(offer, length=17, path=b"/v1/models/echo:predict"):
    return b"POST %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n" % (path, offer, length)


def answered(connection):
    response = http.client.HTTPResponse(connection)
    response.begin()
    return response.status, json.loads(response.read())


def connected(server):
    connection = socket.create_connection((server.host, server.port), timeout=20)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


EXPECTED = 200, {"outputs": {"translation": ["a"], "score": [-1.0]}}


@pytest.mark.slow
@OFFERS
def test_the_offer_is_ignored_however_the_request_is_cut_into_segments(server, offer):
    whole = head(offer) + BODY
    for cut in (len(whole), len(whole) - len(BODY), 40, len(whole) - 5):
        with connected(server) as connection:
            for _ in range(2):  # the connection stays
                connection.sendall(whole[:cut])
                if whole[cut:]:
                    with pytest.raises(TimeoutError):
                        connection.settimeout(0.05)
                        connection.recv(1)
                    connection.settimeout(20)
                connection.sendall(whole[cut:])
                assert answered(connection) == EXPECTED


@OFFERS
def test_a_chunked_body_with_a_trailer_is_read_too(server, offer):
    request = head(offer).replace(b"Content-Length: %d" % len(BODY), b"Transfer-Encoding: chunked")
    next_request = HIDDEN.replace(b"Host", b"Connection: close\r\nHost")
    answers = send(server, request + b"%x\r\n%s\r\n0\r\nX-Sum: 1\r\n\r\n" % (len(BODY), BODY) + next_request)
    assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"200", b"404"]


@OFFERS
def test_a_body_is_never_the_next_request(server, offer):
    """Behind a proxy that shares connections, it would be the request of somebody else."""
    for path in (b"/v1/models/echo:predict", b"/v1/models/echo", b"/none"):
        with connected(server) as connection:
            connection.sendall(head(offer, len(HIDDEN), path) + HIDDEN)
            assert "hidden" not in str(answered(connection))
            connection.sendall(head(b"") + BODY)
            assert answered(connection) == EXPECTED


@OFFERS
def test_requests_that_wait_on_the_connection_may_all_offer_it(server, offer):
    answers = send(server, (head(offer) + BODY) * 20 + HIDDEN.replace(b"Host", b"Connection: close\r\nHost"))
    assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"200"] * 20 + [b"404"]


def test_so_many_offers_are_read_as_other_requests(server):
    answers = send(server, (head(H2C) + BODY) * 2000)
    assert answers.count(b"HTTP/1.1 200") <= 101 and answers.endswith(b"Invalid HTTP request received.")


@pytest.mark.parametrize("length", [b"", b"Content-Length: %d\r\n" % len(HIDDEN)])
def test_connect_is_refused_with_the_connection(server, length):
    answer = send(server, b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n%s\r\n" % length + HIDDEN)
    assert answer.startswith(b"HTTP/1.1 400") and b"hidden" not in answer


@pytest.mark.parametrize(
    "headers",
    [
        b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Transfer-Encoding:\x0bchunked\r\n",
        b"Content-Length: 0\r\nContent-Length: 5\r\n",
        b"Content-Length: 0, 5\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length : 0\r\n",
        b"X: y\r\n Content-Length: 5\r\n",
        b"X: y\nContent-Length: 5\r\n",
        b"\0: y\r\n",
    ],
)
@pytest.mark.parametrize("offer", [b"", H2C], ids=["plain", "h2c"])
def test_a_body_of_doubtful_length_ends_the_connection(server, headers, offer):
    """Two servers in a row could see its end at different places."""
    request = b"POST /v1/models/echo:predict HTTP/1.1\r\nHost: localhost\r\n" + offer + headers + b"\r\n"
    answer = send(server, request + b"0\r\n\r\n" + HIDDEN)
    assert b"hidden" not in answer and answer.count(b"HTTP/1.1") <= 1
