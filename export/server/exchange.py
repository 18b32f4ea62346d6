"""How a request over HTTP is read and its answer sent: within the limits of the server, and while its client waits."""

import asyncio
import contextlib
import functools
import json
import os
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from .bytes_in_flight import Share
from .dispatcher import Dispatcher
from .errors import Code, RequestError, shown
from .json_codec import unzipped

Result = TypeVar("Result")

PART = 1 << 16  # bytes of an answer that are sent at once
# Of routes whose answer has the URL of this server: a proxy says whether it was asked over TLS (X-Forwarded-Proto).
BEHIND_PROXY = [Middleware(ProxyHeadersMiddleware, os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1"))]


async def content_of(request: Request, dispatcher: Dispatcher, share: Share, until: float) -> bytes:
    """Return the body as it was before it was packed. Raises RequestError."""
    is_gzip = is_packed(request.headers)
    most = dispatcher.options.body_bytes
    body = await body_of(request, most, share, until)
    if is_gzip:
        share.resize(share.size + most)
        body = await dispatcher.off_the_loop(functools.partial(unzipped, body, most), share.size, until)
        share.resize(len(body))
    return body


async def body_of(request: Request, most: int, share: Share, until: float) -> bytes:
    """Return the body, whose bytes `share` holds. Raises RequestError if it is too long, or too slow."""
    too_long = RequestError(Code.INVALID_ARGUMENT, f"The body has more than {most} bytes, the most here.", 413)
    if int(request.headers.get("content-length", 0)) > most:  # the parser refuses what is no number
        raise too_long
    chunks, length = [], 0
    try:
        async with share.arriving(until):
            async for chunk in request.stream():
                chunks.append(chunk)
                length += len(chunk)
                if length > most:
                    raise too_long
                share.resize(length)
    except TimeoutError:
        raise RequestError(Code.DEADLINE_EXCEEDED, "The body did not arrive within the deadline.", 408) from None
    except ClientDisconnect:
        raise RequestError(Code.INVALID_ARGUMENT, "The connection ended before the body did.") from None
    return b"".join(chunks)


def is_packed(headers: Headers) -> bool:
    """Return whether a body is gzip. Raises RequestError if it is coded in a way that this server does not read."""
    for name, known, status in (("transfer-encoding", {"chunked"}, 501), ("content-encoding", {"gzip", "x-gzip"}, 415)):
        codings = [coding.strip().lower() for value in headers.getlist(name) for coding in value.split(",")]
        codings = [coding for coding in codings if coding not in ("", "identity")]
        if len(codings) > 1 or not known.issuperset(codings):
            message = (
                f"The body has the {name} {shown(', '.join(codings))!a}; this server reads {min(known)} once, or none."
            )
            raise RequestError(Code.INVALID_ARGUMENT, message, status)
    return bool(codings)


class Answer(Response):
    """A response whose body has parts; the next is sent when the client has read most of the ones before it.

    `held` is closed when all have been sent, when the client has left, or after so many seconds. Then the connection
    ends.
    """

    def __init__(self, chunks: list[bytes], held: contextlib.ExitStack, seconds: float):
        super().__init__(media_type="application/json")
        self.headers["content-length"] = str(sum(map(len, chunks)))
        self._chunks, self._held, self._seconds = chunks[::-1], held, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._held:
            async with asyncio.timeout(self._seconds):
                await self._send(send)

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        while self._chunks:
            chunk = self._chunks.pop()
            await send({"type": "http.response.body", "body": chunk, "more_body": bool(self._chunks)})
            if self._chunks:
                await asyncio.sleep(0)  # to pack a chunk takes a millisecond: other requests come between


async def unless_disconnected(request: Request, answer: Coroutine[Any, Any, Result]) -> Result:
    """Return the answer. Raises RequestError if the client closes the connection before it comes."""
    task: asyncio.Task = asyncio.current_task()  # type: ignore[assignment]  # None outside of a task alone
    leaving, has_left = asyncio.ensure_future(disconnected(request)), False

    def stop(leaving: asyncio.Future) -> None:
        nonlocal has_left
        has_left = True
        task.cancel()

    leaving.add_done_callback(stop)
    try:
        return await answer
    except asyncio.CancelledError:
        if has_left and not task.uncancel():  # nobody else has cancelled it
            raise RequestError(Code.CANCELLED, "The client has left.") from None
        raise
    finally:
        leaving.remove_done_callback(stop)
        leaving.cancel()


async def disconnected(request: Request) -> None:
    """Wait until the client closes the connection; the body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def as_json(content: Any, status: int = 200) -> Response:
    """Return a response whose body is JSON."""
    return Response(json.dumps(content, indent=1).encode(), status, media_type="application/json")


def encoded_json(content: Any) -> list[bytes]:
    """Return JSON in parts of which each is sent at once, in UTF-8."""
    body = json.dumps(content, ensure_ascii=False).encode(errors="replace")
    return [body[start : start + PART] for start in range(0, len(body), PART)]
