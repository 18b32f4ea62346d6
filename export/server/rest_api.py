"""TensorFlow Serving's REST API: status, metadata and predictions of models."""

import contextlib
import functools
import re
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from keras_transformer.page.reference import policy, reference
from keras_transformer.runs.versions import is_number

from .api_keys import TRANSLATIONS, ApiKeys, KeyRequired
from .dispatcher import Dispatcher
from .errors import RequestError, answered_as, invalid, shown, unimplemented
from .exchange import BEHIND_PROXY, Answer, as_json, content_of, unless_disconnected
from .json_codec import json_codec
from .libretranslate import KEYED_BODIES, OPEN_PATHS, LibreTranslate
from .metrics import CONTENT_TYPE
from .model_folder import State
from .openapi import description
from .own_host import OwnHost
from .protocol import definitions_of, status_of
from .translations_api import OpenAiError, TranslationsApi, answer_openai_error
from .welcome import HEADERS, welcome

SHORTEST = 1024  # bytes: below, packing gains nothing
LEVEL = 4  # of zlib's 1 to 9: half the size of level 1's output costs twice its time, more gains little

# the paths of TensorFlow Serving (http_rest_api_handler.cc), in capitals or not
CHOICE = r"(?:(?i:/versions)/(?P<version>[0-9]+)|(?i:/labels)/(?P<label>[^/:]+))?"
PREDICTION = re.compile(rf"(?i:/v1/models)/(?P<name>[^/:]+){CHOICE}:(?P<method>classify|regress|predict)")
STATUS = re.compile(rf"(?i:/v1/models)(?:/(?P<name>[^/:]+))?{CHOICE}(?P<metadata>(?i:/metadata))?")
METRICS = "/monitoring/prometheus/metrics"  # the path of TensorFlow Serving
DESCRIBED = ("/openapi.json", "/docs")
ALLOWED_METHODS = ["GET", "POST"]  # of pages of other sites
ALLOWED_HEADERS = ["authorization", "content-encoding", "content-type", "x-api-key"]
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]


def rest_application(dispatcher: Dispatcher, keys: ApiKeys | None) -> OwnHost:
    """Return the ASGI application that answers through a Dispatcher, to those who have one of the keys if there are."""
    paths = LibreTranslate(dispatcher, keys).paths()
    api = RestApi(dispatcher, frozenset([TRANSLATIONS, *DESCRIBED, *(each.path for each in paths)]))
    application = Starlette(
        routes=[
            Route("/v1/models/{path:path}", api.model, methods=METHODS),  # first, since most requests are for it
            Route("/", api.welcome, middleware=BEHIND_PROXY),
            Route(METRICS, api.metrics),
            *paths,
            Route(DESCRIBED[0], api.description),
            Route(DESCRIBED[1], api.docs, middleware=BEHIND_PROXY),
            Route(TRANSLATIONS, TranslationsApi(dispatcher).translate, methods=["POST"]),
            Route("/{path:path}", api.model, methods=METHODS),
        ],
        exception_handlers={
            OpenAiError: answer_openai_error,  # type: ignore[dict-item]
            RequestError: answer_error,  # type: ignore[dict-item]  # Starlette has no type for handlers of one kind
            HTTPException: malformed,
            Exception: internal_error,
        },
    )
    application.router.redirect_slashes = False
    options = dispatcher.options
    guarded: ASGIApp = GzipAnswers(application)
    if keys is not None:
        open_paths = [*OPEN_PATHS, *DESCRIBED, *([METRICS] if options.metrics_without_key else [])]
        count = functools.partial(dispatcher.metrics.refused, "REST")
        guarded = KeyRequired(guarded, keys, open_paths, count, KEYED_BODIES)
    if options.allow_origins:  # before the keys, which a browser's question whether it may ask does not have
        guarded = CORSMiddleware(guarded, options.allow_origins, ALLOWED_METHODS, ALLOWED_HEADERS)
    return OwnHost(guarded, options.host, options.allow_origins)


class RestApi:
    """The handlers of the routes."""

    def __init__(self, dispatcher: Dispatcher, own_paths: frozenset[str] = frozenset()):
        """own_paths: those that TensorFlow Serving does not have."""
        self.dispatcher, self.own_paths = dispatcher, own_paths

    async def welcome(self, request: Request) -> Response:
        """Answer with a page that translates what is typed, by the first model or by the one of `/?model=NAME`."""
        models = self.dispatcher.models
        served = [folder.name for folder in models if folder.versions] or models.names
        name = request.query_params.get("model", served[0])
        version = self.dispatcher.version(name)
        return welcome(name, origin_of(request), version.signatures, version.example, served, version.languages)

    def _description(self) -> dict[str, Any]:
        return description(self.dispatcher.models, self.dispatcher.options.api_key_file is not None)

    async def description(self, request: Request) -> Response:
        """Answer with the description of this API in the form of OpenAPI."""
        return as_json(self._description())

    async def docs(self, request: Request) -> Response:
        """Answer with a page of the same."""
        headers = HEADERS | {"Content-Security-Policy": f"{policy()}; frame-ancestors 'none'"}
        return HTMLResponse(reference(self._description(), origin_of(request)), headers=headers)

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
        if path in self.own_paths:
            raise HTTPException(405)
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
            body = await content_of(request, self.dispatcher, share, until)
            in_use = self.dispatcher.version_in_use(name, choice)  # a new one, if it came together with the body
            with in_use as version:
                question = await self.dispatcher.question(version, json_codec, body, share.size, until)
                del body
                chunks = await unless_disconnected(request, self.dispatcher.predict(version, question, share, until))
            share.resize(sum(map(len, chunks)))
            return Answer(chunks, stack.pop_all(), self.dispatcher.options.deadline)


def origin_of(request: Request) -> str:
    """Return this server as a reader of its pages reaches it."""
    port = f":{request.url.port}" if request.url.port else ""
    return f"{request.url.scheme}://localhost{port}"


def choice_in(found: re.Match[str]) -> int | str | None:
    """Return the version or the label of a path, None if it has neither. Raises RequestError above 64 bits."""
    version = found["version"]
    if version is None:
        return found["label"]
    if len(version) > 255 or not is_number(version):
        raise invalid(f"Failed to convert version: {version[:30]} to numeric.")
    return int(version)


def as_dictionary(message: Message) -> dict[str, Any]:
    """Return a message as TensorFlow Serving writes it in JSON."""
    return json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )


# errors


async def answer_error(request: Request, error: RequestError) -> Response:
    """Answer with the status and the sentence of an error."""
    response = as_json({"error": error.message}, error.http_status)
    if error.http_status == 408:
        response.headers["connection"] = "close"
    if error.http_status in (429, 503):
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
