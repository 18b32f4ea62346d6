"""The limits of a connection that is fed without a socket: what is read at once is not left to chance."""

import asyncio
import socket
from unittest import mock

import pytest
import uvicorn
from starlette.responses import Response
from uvicorn.server import ServerState

from export.server.http_connection import HEADER_BYTES, HttpConnection

HEAD = b"POST /v1/models/echo:predict HTTP/1.1\r\nHost: localhost\r\n"
GET = b"GET /v1/models/echo HTTP/1.1\r\nHost: localhost\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"


async def waits(scope, receive, send):
    await asyncio.Event().wait()


async def refuses(scope, receive, send):
    await Response("no", 404)(scope, receive, send)


async def fed(application, parts):
    """Feed a connection parts of what a client sends, with time for an answer after each.

    Yields, after its start and after each part, whether the time for headers runs, and whether it has been ended.
    """
    config = uvicorn.Config(application, http=HttpConnection, ws="none", lifespan="off", log_config=None)
    config.load()
    connection = HttpConnection(config=config, server_state=ServerState(), app_state={})
    peer = mock.Mock(**{"family": socket.AF_INET, "getsockname.return_value": ("::1", 1)})
    extra = {"socket": peer, "sockname": ("::1", 1), "peername": ("::1", 2)}
    ends = []
    transport = mock.Mock(
        get_extra_info=extra.get,
        is_closing=lambda: bool(ends),
        close=lambda: ends.append(1),
        get_write_buffer_size=lambda: 0,
    )
    connection.connection_made(transport)
    found = [(connection._header_timer is not None, bool(ends))]
    for part in parts:
        connection.data_received(part)
        await asyncio.sleep(0.001)
        found.append((connection._header_timer is not None, bool(ends)))
    timer = connection._header_timer
    connection.connection_lost(None)
    assert timer is None or timer.cancelled()
    for task in connection.tasks:
        task.cancel()
    await asyncio.gather(*connection.tasks, return_exceptions=True)
    return found


FOUR = b"Content-Length: 4\r\n\r\n"


@pytest.mark.parametrize(
    ("application", "parts", "is_running"),
    [
        (waits, [HEAD[:20], HEAD[20:] + FOUR], [True, True, False]),
        (waits, [HEAD + FOUR, b"ab", b"cd"], [True, False, False, False]),
        (waits, [HEAD + FOUR + b"abcd", GET[:3], GET[3:]], [True, False, True, False]),
        (waits, [HEAD + CHUNKED + b"\r\n", b"1\r\nx\r\n"], [True, False, False]),
        (refuses, [HEAD + FOUR, b"ab", b"cd" + GET], [True, False, True, False]),
        (refuses, [HEAD + FOUR + b"abcd", b"\r\n", GET[:3]], [True, False, True, True]),
    ],
)
def test_time_runs_for_headers_and_for_the_rest_of_a_refused_body_and_for_nothing_else(application, parts, is_running):
    assert asyncio.run(fed(application, parts)) == [(each, False) for each in is_running]


LONG = b"X: " + b"a" * (HEADER_BYTES - 3)


@pytest.mark.parametrize(
    ("parts", "is_ended"),
    [
        ([HEAD, LONG], False),
        ([HEAD, LONG, b"a"], True),
        ([HEAD, *[b"X: " + b"a" * 20_000 + b"\r\n"] * 4], True),
        ([HEAD + b"Content-Length: 100000\r\n\r\n", b" " * 100_000 + HEAD, LONG[:1000]], False),
        ([HEAD + b"Content-Length: 100000\r\n\r\n", b" " * 70_000, b" " * 29_000], False),
        ([HEAD + CHUNKED + b"\r\n", b"%x\r\n%s\r\n" % (90_000, b" " * 90_000), b"1\r\nx\r\n"], False),
        ([HEAD + CHUNKED + b"\r\n1\r\nx\r\n0\r\n", LONG, b"a"], True),
    ],
)
def test_headers_and_trailers_have_so_many_bytes_and_bodies_more(parts, is_ended):
    assert asyncio.run(fed(waits, parts))[-1][1] is is_ended
