"""uvicorn's HTTP connection with limits on time and size."""

import asyncio
import json
import socket
from typing import Any

import httptools
from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .options import REFUSED, ServerOptions

HEADER_BYTES = 1 << 16
PIPELINED = 100  # requests of a connection that wait for an earlier answer, at most
NO_ROOM = Response(
    json.dumps({"error": "This server has as many connections as it takes; try again later."}),
    503,
    {"connection": "close", "retry-after": "1"},
    "application/json",
)


class HttpConnection(HttpToolsProtocol):
    """A connection with limits that uvicorn lacks.

    - **Headers.** The connection is closed if the headers of a request are incomplete `seconds` after it was opened or
      after the request began. It is also closed if more than HEADER_BYTES of headers follow the read in which they
      began. Trailers of a chunked body count as headers. Between requests, uvicorn's own limit holds.
    - **The rest of a refused body** is read and dropped for `seconds` after the answer, even if the connection is to
      end: a client that is still sending when its connection is closed loses the answer.
    - **Pipelined requests.** If more than PIPELINED of them wait, the connection ends.
    - **Unread answers.** The connection is aborted if its client reads nothing of its answer for `seconds`.
    - **The number of connections.** If there are more than `most`, the one that has been idle for longest between two
      requests is closed. If none is idle, the new one gets 503, and no other one does. If REFUSED of them wait for
      their 503, the next one is closed without: each of them has a file descriptor.

    Two more things differ from uvicorn's connection:

    - **One write.** Headers and body of an answer go to the system together (EndingTransport). TCP_NODELAY sends what
      follows at once; without it, that waits until the client has acknowledged what was sent before.
    - **No upgrades.** See ParserWithoutUpgrades.
    """

    seconds, most = 10.0, 1000
    parser: "ParserWithoutUpgrades"  # type: ignore[assignment]  # it stands for httptools' own

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self.parser = ParserWithoutUpgrades(self)

    @classmethod
    def limited(cls, options: ServerOptions) -> type["HttpConnection"]:
        """Return this class with the limits of the options: uvicorn creates the connections itself."""
        return type(cls.__name__, (cls,), {"seconds": options.header_seconds, "most": options.connections})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        self._socket = transport
        if transport.get_extra_info("socket").family != socket.AF_UNIX:
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.is_ending = self._is_lost = self._sends_body = False
        self._ending = EndingTransport(transport, self)
        super().connection_made(self._ending)  # type: ignore[arg-type]  # it stands for a Transport
        self._headers_begun, self._is_in_headers, self._header_bytes = 0, False, 0
        self._reader_timer: asyncio.TimerHandle | None = None
        self._header_timer: asyncio.TimerHandle | None = self._wait_for_headers()
        if not self._has_room():
            self.app = NO_ROOM
            if len(self.connections) > self.most + REFUSED:
                self._socket.abort()

    def _has_room(self) -> bool:
        """Return whether this connection is one of `most` at most; close an idle one for that if need be."""
        if len(self.connections) <= self.most:
            return True
        others = [each for each in self.connections if isinstance(each, HttpConnection) and each is not self]
        served = [each for each in others if not each.is_ending and each.app is not NO_ROOM]
        if len(served) < self.most:
            return True
        limits = {each: each.timeout_keep_alive_task for each in served if not each._sends_body}
        idle = {each: limit.when() for each, limit in limits.items() if limit is not None}
        if not idle:
            return False
        min(idle, key=idle.__getitem__).end()
        return True

    def connection_lost(self, error: Any) -> None:
        for timer in (self._header_timer, self._reader_timer):
            if timer is not None:
                timer.cancel()
        self._header_timer = self._reader_timer = None
        self._is_lost = True
        super().connection_lost(error)
        self._unset_keepalive_if_required()  # uvicorn does so only if there was no error: it would hold all this

    def end(self) -> None:
        """Close the connection; if the client is still sending a refused body, send the answer and drop the body first.

        The rest of the body has as many seconds as headers have. A second call closes at once.
        """
        if self._is_lost:  # uvicorn closes it again; over TLS there is nothing left that could be asked
            return
        self._ending.flush()
        if not self._sends_body or not self.cycle.response_complete or self.is_ending or self._socket.is_closing():
            self._close()
            return
        self.is_ending = True
        if self._socket.can_write_eof():  # not over TLS; there, the client knows the end by Content-Length
            self._socket.write_eof()
        self.flow.resume_reading()
        if self._header_timer is None:
            self._header_timer = self._wait_for_headers()

    def _close(self) -> None:
        self.is_ending = True
        self._ending.flush()
        self._socket.close()
        self._watch_reader()

    # headers, and the rest of bodies

    def _wait_for_headers(self) -> asyncio.TimerHandle:
        return self.loop.call_later(self.seconds, self._close)

    def data_received(self, data: bytes) -> None:
        headers_before = self._headers_begun if self._is_in_headers else None
        super().data_received(data)
        if self._header_timer is None and (self.cycle is None or self.cycle.response_complete):
            self._header_timer = self._wait_for_headers()  # the rest of a refused body
        if self._is_in_headers and self._headers_begun == headers_before:
            self._header_bytes += len(data)
            if self._header_bytes > HEADER_BYTES:
                self._close()

    def _begin_headers(self) -> None:
        self._headers_begun += 1
        self._is_in_headers, self._header_bytes = True, 0

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begin_headers()
        if self._header_timer is None:
            self._header_timer = self._wait_for_headers()

    def on_headers_complete(self) -> None:
        if self.parser.is_upgrade():
            return
        self._is_in_headers = False
        if self._header_timer is not None:
            self._header_timer.cancel()
        self._header_timer = None
        if httptools.parse_url(self.url).host:  # GET http://HOST/: that is the host (RFC 9112, 3.2.2)
            others = [header for header in self.headers if header[0] != b"host"]
            self.headers[:] = [(b"host", self.url.split(b"/", 3)[2]), *others]
        super().on_headers_complete()  # raises an error for a URL that is none
        self._sends_body = True
        if len(self.pipeline) > PIPELINED:
            raise ValueError("too many pipelined requests")  # the parser passes it on, and uvicorn answers with 400

    def on_chunk_header(self) -> None:
        self._begin_headers()  # trailers follow if this is the last chunk

    def on_body(self, body: bytes) -> None:
        self._is_in_headers = False
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.parser.is_upgrade():
            return
        self._is_in_headers = self._sends_body = False
        super().on_message_complete()
        if self.is_ending:
            self._close()

    # answers that nobody reads

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def _watch_reader(self) -> None:
        """Abort the connection if the client reads nothing of its answer for `seconds`, now or later."""
        unread = self._socket.get_write_buffer_size()
        if unread and self._reader_timer is None:
            self._reader_timer = self.loop.call_later(self.seconds, self._abort_if_unread, unread)

    def _abort_if_unread(self, before: int) -> None:
        self._reader_timer = None
        if self._socket.get_write_buffer_size() >= before:
            self._socket.abort()
        else:
            self._watch_reader()


class EndingTransport:
    """A transport that ends as its connection does: uvicorn closes transports in many places.

    What is written waits for what is written next, at most until the event loop turns: uvicorn writes the headers of an
    answer and its body one by one, and a call of the system takes 6 per cent of the time of a request.
    """

    def __init__(self, transport: asyncio.Transport, connection: HttpConnection):
        self._transport, self._connection, self._head = transport, connection, b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._connection.is_ending or self._transport.is_closing()

    def write(self, data: bytes) -> None:
        if self._head:
            data, self._head = self._head + data, b""
        elif len(data) <= HEADER_BYTES:
            self._head = data
            self._connection.loop.call_soon(self.flush)
            return
        self._transport.write(data)

    def flush(self) -> None:
        """Write what waits."""
        if self._head:
            self._transport.write(self._head)
            self._head = b""

    def close(self) -> None:
        self._connection.end()


class ParserWithoutUpgrades:
    """The parser of a connection, which reads a request that offers another protocol as if it offered none.

    A client may offer one to every server (`Upgrade: h2c` of Java and of `curl --http2`), and a server may ignore the
    offer (RFC 9110, 7.8). httptools cannot: it ends the request after its headers, so that the body would be taken for
    the next request. Here, a new httptools parser reads the same headers without the offer, and then what follows
    them. After CONNECT, what follows is never HTTP: the request is refused, and the connection ends.
    """

    def __init__(self, connection: HttpToolsProtocol):
        self._connection = connection
        self._parser = self._new_parser()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)

    def _new_parser(self) -> httptools.HttpRequestParser:
        parser = httptools.HttpRequestParser(self._connection)
        parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn: a request may end the connection
        return parser

    def is_upgrade(self) -> bool:
        """Return whether the request that is read now will be read again. Raises ValueError for CONNECT."""
        if self._parser.should_upgrade() and self._parser.get_method() == b"CONNECT":
            raise ValueError("this server is no proxy")
        return self._parser.should_upgrade()

    def feed_data(self, data: bytes) -> None:
        """Parse bytes. Raises HttpParserError if they are no HTTP."""
        rest = memoryview(data)
        while True:
            try:
                self._parser.feed_data(rest)
                return
            except httptools.HttpParserUpgrade as upgrade:
                head, rest = self._head(), rest[upgrade.args[0] :]
            self._parser = self._new_parser()
            self._parser.feed_data(head)

    def _head(self) -> bytes:
        """Return the request line and the headers that were read, without the offer."""
        request = b"%s %s HTTP/%s" % (
            self._parser.get_method(),
            self._connection.url,
            self._parser.get_http_version().encode(),
        )
        headers = [b"%s: %s" % header for header in self._connection.headers if header[0] != b"upgrade"]
        return b"\r\n".join([request, *headers, b"", b""])
