"""TensorFlow Serving's REST API: status, metadata and predictions of models."""

import asyncio
import contextlib
import functools
import json
import re
from collections.abc import Coroutine
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ..versions import is_number
from .api_keys import ApiKeys, KeyRequired
from .bytes_in_flight import Share
from .dispatcher import Dispatcher
from .errors import Code, RequestError, answered_as, invalid, shown, unimplemented
from .json_codec import json_codec, unzipped
from .metrics import CONTENT_TYPE
from .model_folder import State
from .own_host import OwnHost
from .protocol import definitions_of, status_of
from .welcome import welcome

SHORTEST = 1024  # bytes: below, packing gains nothing
LEVEL = 4  # of zlib's 1 to 9: half the size of level 1's output costs twice its time, more gains little

# the paths of TensorFlow Serving (http_rest_api_handler.cc), in capitals or not
CHOICE = r"(?:(?i:/versions)/(?P<version>[0-9]+)|(?i:/labels)/(?P<label>[^/:]+))?"
PREDICTION = re.compile(rf"(?i:/v1/models)/(?P<name>[^/:]+){CHOICE}:(?P<method>classify|regress|predict)")
STATUS = re.compile(rf"(?i:/v1/models)(?:/(?P<name>[^/:]+))?{CHOICE}(?P<metadata>(?i:/metadata))?")
METRICS = "/monitoring/prometheus/metrics"  # the path of TensorFlow Serving
ALLOWED_METHODS = ["GET", "POST"]  # of pages of other sites
ALLOWED_HEADERS = ["authorization", "content-encoding", "content-type", "x-api-key"]
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]


def rest_application(dispatcher: Dispatcher, keys: ApiKeys | None) -> OwnHost:
    """Return the ASGI application that answers through a Dispatcher, to those who have one of the keys if there are."""
    api = RestApi(dispatcher)
    application = Starlette(
        routes=[
            Route("/", api.welcome),
            Route(METRICS, api.metrics),
            Route("/{path:path}", api.model, methods=METHODS),
        ],
        exception_handlers={
            RequestError: answer_error,  # type: ignore[dict-item]  # Starlette has no type for handlers of one kind
            HTTPException: malformed,
            Exception: internal_error,
        },
    )
    application.router.redirect_slashes = False
    options = dispatcher.options
    guarded: ASGIApp = GzipAnswers(application)
    if keys is not None:
        open_paths = [METRICS] if options.metrics_without_key else []
        guarded = KeyRequired(guarded, keys, open_paths, functools.partial(dispatcher.metrics.refused, "REST"))
    if options.allow_origins:  # before the keys, which a browser's question whether it may ask does not have
        guarded = CORSMiddleware(guarded, options.allow_origins, ALLOWED_METHODS, ALLOWED_HEADERS)
    return OwnHost(guarded, options.host, options.allow_origins)


class RestApi:
    """The handlers of the routes."""

    def __init__(self, dispatcher: Dispatcher):
        self.dispatcher = dispatcher

    async def welcome(self, request: Request) -> Response:
        """Answer with a page that translates what is typed, by the first model or by the one of `/?model=NAME`."""
        models = self.dispatcher.models
        served = [folder.name for folder in models if folder.versions] or models.names
        name = request.query_params.get("model", served[0])
        version = self.dispatcher.version(name)
        port = f":{request.url.port}" if request.url.port else ""
        origin = f"{request.url.scheme}://localhost{port}"
        return welcome(name, origin, version.signatures, version.example, served)

    async def metrics(self, request: Request) -> Response:
        """Answer with counts and times for Prometheus."""
        return Response(self.dispatcher.metrics.text(), headers={"content-type": CONTENT_TYPE})

    async def model(self, request: Request) -> Response:
        """Answer a request for a prediction, the status or the metadata of a model."""
        path = request.scope["path"]
        if request.method == "POST" and (found := PREDICTION.fullmatch(path)):
            return await self.predict(request, found["name"], choice_in(found), found["method"].capitalize())
        if request.method in ("GET", "HEAD") and (found := STATUS.fullmatch(path)):
            if found["name"] is None:
                raise invalid("Missing model name in request.")
            return (self.metadata if found["metadata"] else self.status)(found["name"], choice_in(found))
        raise HTTPException(400 if path.lower().startswith("/v1/") else 404)

    def status(self, name: str, choice: int | str | None) -> Response:
        """Answer 200 while the model is served, for probes: 503 if not, or if the server shuts down or stands still."""
        self.dispatcher.refuse_unless_well()
        number = None if isinstance(choice, str) else choice  # a label is ignored, as there
        statuses = self.dispatcher.statuses(name, number)
        is_served = any(status.state is State.AVAILABLE for status in statuses.values())
        return as_json(as_dictionary(status_of(statuses)), 200 if is_served else 503)

    def metadata(self, name: str, choice: int | str | None) -> Response:
        version = self.dispatcher.version(name, choice)
        model_spec = {"name": name, "signature_name": "", "version": str(version.number)}
        signatures = as_dictionary(definitions_of(version))
        return as_json({"model_spec": model_spec, "metadata": {"signature_def": signatures}})

    async def predict(self, request: Request, name: str, choice: int | str | None, method: str) -> Response:
        with contextlib.ExitStack() as stack:
            until = stack.enter_context(self.dispatcher.request("REST", method))
            share = stack.enter_context(self.dispatcher.bytes_in_flight.share())
            self.dispatcher.version(name, choice)  # an unknown model is refused before its body is read
            if method != "Predict":
                raise unimplemented()
            body = await self.content(request, share, until)
            in_use = self.dispatcher.version_in_use(name, choice)  # a new one, if it came together with the body
            with in_use as version:
                question = await self.dispatcher.question(version, json_codec, body, share.size, until)
                del body
                chunks = await unless_disconnected(request, self.dispatcher.predict(version, question, share, until))
            share.resize(sum(map(len, chunks)))
            return Answer(chunks, stack.pop_all(), self.dispatcher.options.deadline)

    async def content(self, request: Request, share: Share, until: float) -> bytes:
        """Return the body as it was before it was packed. Raises RequestError."""
        is_gzip = is_packed(request.headers)
        body = await self.body(request, share, until)
        if is_gzip:
            most = self.dispatcher.options.body_bytes
            share.resize(share.size + most)
            body = await self.dispatcher.off_the_loop(functools.partial(unzipped, body, most), share.size, until)
            share.resize(len(body))
        return body

    async def body(self, request: Request, share: Share, until: float) -> bytes:
        """Return the body, whose bytes `share` holds. Raises RequestError if it is too long, or too slow."""
        most = self.dispatcher.options.body_bytes
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


def choice_in(found: re.Match[str]) -> int | str | None:
    """Return the version or the label of a path, None if it has neither. Raises RequestError above 64 bits."""
    version = found["version"]
    if version is None:
        return found["label"]
    if len(version) > 255 or not is_number(version):
        raise invalid(f"Failed to convert version: {version[:30]} to numeric.")
    return int(version)


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
            await asyncio.sleep(0)  # to pack a chunk takes a millisecond: other requests come between


async def unless_disconnected(request: Request, answer: Coroutine[Any, Any, list[bytes]]) -> list[bytes]:
    """Return the answer. Raises RequestError if the client closes the connection before it comes."""
    computing, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(disconnected(request))
    try:
        await asyncio.wait({computing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not computing.done():
            raise RequestError(Code.CANCELLED, "The client has left.")  # nobody reads it
        return await computing
    finally:
        computing.cancel()
        leaving.cancel()


async def disconnected(request: Request) -> None:
    """Wait until the client closes the connection; the body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def as_dictionary(message: Message) -> dict[str, Any]:
    """Return a message as TensorFlow Serving writes it in JSON."""
    return json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )


def as_json(content: dict[str, Any], status: int = 200) -> Response:
    """Return a response whose body is JSON."""
    return Response(json.dumps(content, indent=1).encode(), status, media_type="application/json")


# errors


async def answer_error(request: Request, error: RequestError) -> Response:
    """Answer with the status and the sentence of an error."""
    response = as_json({"error": error.message}, error.http_status)
    if error.http_status == 408:
        response.headers["connection"] = "close"
    if error.http_status == 503:
        response.headers["retry-after"] = "1"
    return response


async def malformed(request: Request, error: Exception) -> Response:
    """Answer a request for a path or a method that this server does not have."""
    status = getattr(error, "status_code", 404)
    return as_json({"error": f"Malformed request: {request.method} {shown(request.url.path)}"}, status)


async def internal_error(request: Request, error: Exception) -> Response:
    """Answer an error of this server without its details."""
    return await answer_error(request, answered_as(error))


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
