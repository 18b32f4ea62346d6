"""TensorFlow Serving's REST API: status, metadata and predictions of a model."""

import asyncio
import functools
import json
import logging
import re
import time
from typing import Any

from google.protobuf import json_format
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from .dispatcher import Dispatcher
from .errors import Code, RequestError
from .json_codec import read_request, write_answer
from .protocol import definitions_of, status_of
from .welcome import welcome

BIG_BODY = 1 << 16  # bytes: reading that much JSON in the event loop would delay everybody else

log = logging.getLogger("export.server")


def rest_application(service: Dispatcher) -> Starlette:
    """Return the ASGI application of a Dispatcher."""
    api = RestApi(service)
    model = "/v1/models/{name}"
    application = Starlette(
        routes=[
            Route("/", api.welcome),
            *(
                route
                for path in (model, model + "/versions/{version}")
                for route in (
                    Route(path + ":predict", api.predict, methods=["POST"]),
                    Route(path + "/metadata", api.metadata),
                    Route(path, api.status),
                )
            ),
        ],
        exception_handlers={RequestError: answer_error, 404: malformed, 405: malformed, Exception: internal_error},
    )
    application.router.redirect_slashes = False
    return application


class RestApi:
    """The handlers of the routes."""

    def __init__(self, service: Dispatcher):
        self.service = service

    async def welcome(self, request: Request) -> Response:
        """A page that translates what is typed."""
        folder = self.service.folder
        version = folder.version()
        return welcome(folder.name, request.url.port or 80, version.signatures, version.example())

    async def status(self, request: Request) -> Response:
        """As a probe of Kubernetes: 200 while the model is served, 503 when the server is ending."""
        self.service.refuse_if_draining()
        statuses = self.service.statuses(*wanted_by(request))
        return as_json(as_dictionary(status_of(statuses)))

    async def metadata(self, request: Request) -> Response:
        version = self.service.version(*wanted_by(request))
        model_spec = {"name": self.service.folder.name, "signature_name": "", "version": str(version.number)}
        signatures = as_dictionary(definitions_of(version))
        return as_json({"model_spec": model_spec, "metadata": {"signature_def": signatures}})

    async def predict(self, request: Request) -> Response:
        with self.service.request() as until:
            wanted = wanted_by(request)
            self.service.version(*wanted)  # what is not there is refused before its body is read
            body = await self.body(request, until)
            read = functools.partial(read_request, body, self.service.options.request_rows)
            content = await asyncio.to_thread(read) if len(body) > BIG_BODY else read()
            body = read = None  # the content is enough to wait with
            computing = asyncio.ensure_future(
                self.service.predict(*wanted, content.signature_name, content.arrays, [], until)
            )
            leaving = asyncio.ensure_future(disconnected(request))
            try:
                await asyncio.wait({computing, leaving}, return_when=asyncio.FIRST_COMPLETED)
                if not computing.done():
                    return Response(status_code=499)  # nobody reads it
                *_, outputs = await computing
                return Response(write_answer(outputs, content.is_by_row), media_type="application/json")
            finally:
                computing.cancel()
                leaving.cancel()

    async def body(self, request: Request, until: float) -> bytes:
        """Return the body. Raises RequestError if it is too long, or too slow."""
        most = self.service.options.body_bytes
        too_long = RequestError(Code.INVALID_ARGUMENT, f"The body has more than {most} bytes, the most here.", 413)
        if int(request.headers.get("content-length", 0)) > most:  # the parser has refused what is no number
            raise too_long
        chunks, length = [], 0
        try:
            async with asyncio.timeout(until - time.monotonic()):
                async for chunk in request.stream():
                    chunks.append(chunk)
                    length += len(chunk)
                    if length > most:
                        raise too_long
        except TimeoutError:
            raise RequestError(Code.DEADLINE_EXCEEDED, "The body did not arrive within the deadline.", 408) from None
        except ClientDisconnect:
            raise RequestError(Code.INVALID_ARGUMENT, "The connection ended before the body did.") from None
        return b"".join(chunks)


def wanted_by(request: Request) -> tuple[str, int | None]:
    """Return the model and the version that the path names, None if any. Raises HTTPException if it is no number."""
    name, version = request.path_params["name"], request.path_params.get("version")
    if version is None:
        return name, None
    if not re.fullmatch(r"[0-9]{1,19}", version):
        raise HTTPException(404)
    return name, int(version)


async def disconnected(request: Request) -> None:
    """Return when the client has closed the connection; the body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def as_dictionary(message: Any) -> dict[str, Any]:
    return json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )


def as_json(content: dict[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(content, indent=1).encode(), status, media_type="application/json")


# errors


async def answer_error(request: Request, error: RequestError) -> Response:
    response = as_json({"error": error.message}, error.http_status)
    if error.http_status == 408:
        response.headers["connection"] = "close"
    if error.http_status == 503:
        response.headers["retry-after"] = "1"
    return response


async def malformed(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    return as_json({"error": f"Malformed request: {request.method} {request.url.path}"}, status)


async def internal_error(request: Request, error: Exception) -> Response:
    log.error("a request failed: %a", error)
    return as_json({"error": "The server failed at this request."}, 500)
