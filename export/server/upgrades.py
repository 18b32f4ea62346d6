"""Requests that offer another protocol, such as `Upgrade: h2c`, read as plain HTTP."""

from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


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
