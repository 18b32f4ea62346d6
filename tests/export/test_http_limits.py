"""The limits of a connection that is fed without a socket: what is read at once is not left to chance."""

import asyncio
import socket
import types
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


def test_a_closed_connection_ends_although_its_client_reads_nothing():
    """What is left of an answer has `seconds` for each part of it; then the connection is aborted."""
    timers = []
    unread, aborted = iter([9, 9, 4, 4, 4]), []
    connection = HttpConnection.__new__(HttpConnection)
    connection.loop, connection._reader_timer = mock.Mock(call_later=lambda *timer: timers.append(timer) or timer), None
    connection._socket = mock.Mock(
        get_write_buffer_size=lambda: next(unread), abort=lambda: aborted.append(len(timers))
    )
    connection._close()  # with 9 bytes unread
    connection._watch_reader()  # a second time: nothing more
    for seconds, check, before in timers:
        assert seconds == connection.seconds
        check(before)
    assert aborted == [2] and connection.is_ending  # after 4 bytes were left twice


@pytest.mark.parametrize("can_be", [True, False])
def test_only_what_can_be_half_closed_is(can_be):
    """A connection over TLS cannot: its client knows the end of the answer by the length."""
    transport = mock.Mock(**{"can_write_eof.return_value": can_be, "is_closing.return_value": False})
    cycle, flow = types.SimpleNamespace(response_complete=True), mock.Mock()
    connection = mock.Mock(_sends_body=True, is_ending=False, cycle=cycle, flow=flow, _socket=transport)
    HttpConnection.end(connection)
    assert transport.write_eof.called is can_be and flow.resume_reading.called
    assert connection.is_ending is True and not connection._close.called


def alone(**socket_has):
    """A connection whose refused request still sends its body, without uvicorn, and what happens on its socket."""
    done, connection = mock.Mock(), HttpConnection.__new__(HttpConnection)
    done.can_write_eof.return_value, done.is_closing.return_value = True, False
    done.get_write_buffer_size.return_value = 0
    for name, value in socket_has.items():
        getattr(done, name).return_value = value
    connection._socket, connection.flow, connection.loop = done, mock.Mock(), mock.Mock()
    connection.cycle = types.SimpleNamespace(response_complete=True)
    connection._sends_body, connection.is_ending = True, False
    connection._header_timer = connection._reader_timer = None
    return connection, done


@pytest.mark.parametrize("sends_body", [True, False])
@pytest.mark.parametrize("is_answered", [True, False])
@pytest.mark.parametrize("is_ending", [True, False])
@pytest.mark.parametrize("is_closing", [True, False])
@pytest.mark.parametrize("can_write_eof", [True, False])
def test_a_connection_waits_for_the_rest_of_a_body_once_and_only_if_its_answer_is_out(
    sends_body, is_answered, is_ending, is_closing, can_write_eof
):
    connection, done = alone(is_closing=is_closing, can_write_eof=can_write_eof)
    connection._sends_body, connection.is_ending = sends_body, is_ending
    connection.cycle.response_complete = is_answered
    connection.end()
    waits = sends_body and is_answered and not is_ending and not is_closing
    assert connection.is_ending and done.close.called is not waits
    assert done.write_eof.called is (waits and can_write_eof)
    assert connection.flow.resume_reading.called is waits
    assert connection.loop.call_later.mock_calls == [mock.call(connection.seconds, connection._close)] * waits
    connection.end()
    assert done.close.called and len(connection.loop.call_later.mock_calls) == waits


def test_who_reads_nothing_of_an_answer_is_cut_off_and_who_reads_slowly_is_not():
    for close in (HttpConnection.pause_writing, HttpConnection._close):
        connection, done = alone(get_write_buffer_size=900)
        close(connection)
        assert connection.flow.pause_writing.called is (close is HttpConnection.pause_writing)
        for left in (899, 500):  # the client reads
            [(seconds, look, before)] = [call.args for call in connection.loop.call_later.mock_calls]
            assert (seconds, look) == (connection.seconds, connection._abort_if_unread)
            connection._watch_reader()  # it is watched already
            assert len(connection.loop.call_later.mock_calls) == 1
            connection.loop.reset_mock()
            done.get_write_buffer_size.return_value = left
            look(before)
            assert not done.abort.called
        [(_, look, before)] = [call.args for call in connection.loop.call_later.mock_calls]
        look(before)
        assert done.abort.called and before == 500 and connection._reader_timer is None
    connection, done = alone()
    connection._close()
    assert done.close.called and not connection.loop.call_later.called  # all of it is out
