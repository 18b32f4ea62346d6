"""Answers packed with gzip, for clients that take them."""

from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

SHORTEST = 1024  # bytes: below, packing gains nothing
LEVEL = 4  # of zlib's 1 to 9: half the size of level 1's output costs twice its time, more gains little


class GzipAnswers:
    """An ASGI application before another one, which packs answers of at least SHORTEST bytes if the client asks.

    Not for HTTP/1.0, whose clients do not know chunks: a long answer is packed and sent in parts.
    """

    def __init__(self, application: ASGIApp):
        self.application, self.packed = application, GZipMiddleware(application, SHORTEST, LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_taken = scope["http_version"] != "1.0" and takes_gzip(Headers(scope=scope))
        await (self.packed if is_taken else self.application)(scope, receive, send)


def takes_gzip(headers: Headers) -> bool:
    """Return whether Accept-Encoding has gzip, with a weight that is not 0 (RFC 9110, 12.5.3)."""
    for coding in ",".join(headers.getlist("accept-encoding")).split(","):
        name, *parameters = [part.strip().lower() for part in coding.split(";")]
        if name == "gzip":
            return not any(part.replace(" ", "").removeprefix("q=").strip("0.") == "" for part in parameters)
    return False
