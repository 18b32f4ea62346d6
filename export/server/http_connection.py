"""An HTTP connection that does not wait for ever: headers have a deadline and a size."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from export.server.options import ServerOptions

HEADER_BYTES = 1 << 16


class HttpConnection(HttpToolsProtocol):
    """uvicorn's connection with two limits that uvicorn lacks.

    A connection is closed if the headers of a request are not complete `seconds` after it was opened, or after the
    request began, and if they are longer than HEADER_BYTES. Between requests uvicorn's own limit holds, until any byte
    comes, such as the rest of a body: from then on there are `seconds` for the next headers.
    """

    seconds = 10.0

    @classmethod
    def limited(cls, options: ServerOptions) -> type["HttpConnection"]:
        """Return the class with the limits of the options: uvicorn creates the connections itself."""
        return type(cls.__name__, (cls,), {"seconds": options.header_seconds})

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._is_in_headers, self._header_bytes = False, 0
        self._header_timer = self._wait_for_headers()

    def _wait_for_headers(self) -> asyncio.TimerHandle:
        return self.loop.call_later(self.seconds, self.transport.close)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._header_timer is None and (self.cycle is None or self.cycle.response_complete):
            self._header_timer = self._wait_for_headers()  # the rest of a body that was not wanted: uvicorn's ends
        if self._is_in_headers:
            self._header_bytes += len(data)
            if self._header_bytes > HEADER_BYTES:
                self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_headers, self._header_bytes = True, 0
        if self._header_timer is None:
            self._header_timer = self._wait_for_headers()

    def on_headers_complete(self) -> None:
        self._is_in_headers = False
        self._header_timer.cancel()
        self._header_timer = None
        super().on_headers_complete()

    def connection_lost(self, error: Any) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
        super().connection_lost(error)
