"""API keys: whoever asks must send one of those in a file, over both protocols."""

import hashlib
import hmac
import json
import pathlib
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import grpc
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ..versions import ExportError
from .tls import content_of

REFUSAL = "This server wants an API key, as `Authorization: Bearer KEY` or `x-api-key: KEY`."
FORM = re.compile(rb"[!-~]+")  # what a header can carry without quoting
STATUS = re.compile(
    r"(?i:/v1/models)/[^/:]+(?:(?i:/versions)/[0-9]+|(?i:/labels)/[^/:]+)?"
)  # of a model: what a probe asks
DOWNLOAD = re.compile("/download_file/[^/]+")  # of a name that nobody can guess
TRANSLATIONS = "/v1/translations"
HAS_KEY = "keras_transformer.has_key"  # in a scope
HEALTH = "/grpc.health.v1.Health/"


class ApiKeys:
    """The keys in a file, one per line; empty lines and those that begin with # are none.

    Only SHA-256 of each is kept. Raises ExportError, as `refresh` does, if the file has no key, or a line that is none.
    """

    def __init__(self, file: pathlib.Path):
        self.file = file
        self._digests: list[bytes] = []
        self._seen = content_of(file)
        self.refresh()

    def refresh(self) -> bool:
        """Read the file again; a key that is gone is refused from now on. Returns whether there are other keys.

        What it has counts when the look before found the same: a file that is being written may have half of a key.
        After an error the keys stay.
        """
        content, before = content_of(self.file), self._seen
        self._seen = content
        if content != before:
            return False
        lines = [line.strip() for line in content.splitlines()]
        for number, line in enumerate(lines, 1):
            if line and not line.startswith(b"#") and not FORM.fullmatch(line):
                raise ExportError(
                    f"Line {number} of {self.file} is no API key: a key is of ASCII letters, digits and signs, without "
                    "spaces."
                )
        digests = [digest(line) for line in lines if line and not line.startswith(b"#")]
        if not digests:
            raise ExportError(f"{self.file} has no API key: write one per line, for example with openssl rand -hex 32.")
        is_new = digests != self._digests
        self._digests = digests
        return is_new

    def permits(self, headers: Iterable[tuple[str, str | bytes]]) -> bool:
        """Return whether headers, or metadata of gRPC, have a key of the file. Every key is compared in full."""
        return any([self.has(key) for name, value in headers for key in keys_in(name.lower(), value)])

    def has(self, key: bytes) -> bool:
        """Return whether this is a key of the file. Every key is compared in full."""
        found = digest(key)
        return any([hmac.compare_digest(found, known) for known in self._digests])


def digest(key: bytes) -> bytes:
    """Return SHA-256 of a key: of equal length for every key, so that a comparison tells nothing of it."""
    return hashlib.sha256(key).digest()


def keys_in(name: str, value: str | bytes) -> list[bytes]:
    """Return the key in a header, if it has one."""
    content = value.encode("latin-1", "replace") if isinstance(value, str) else value
    if name == "x-api-key":
        return [content.strip()]
    if name == "authorization" and content[:7].lower() == b"bearer ":
        return [content[7:].strip()]
    return []


def has_key(scope: Scope) -> bool:
    """Return whether a header of a request that KeyRequired let through has a key."""
    return scope.get(HAS_KEY, False)


class KeyRequired:
    """An ASGI application before another one, which answers 401 to requests without a key.

    Without one anybody gets the page, which asks for a key; the status of a model, which probes ask; files under names
    that nobody can guess; and the paths of `open_paths`. A POST to one of `keyed_bodies` goes through: its key may be
    in its body, so that who answers it must look there unless `has_key`.
    """

    def __init__(
        self,
        application: ASGIApp,
        keys: ApiKeys,
        open_paths: Iterable[str],
        count: Callable[[], None],
        keyed_bodies: Iterable[str],
    ):
        """count: called for each prediction that is refused."""
        self.application, self.keys, self.open_paths, self.count = application, keys, {"/", *open_paths}, count
        self.keyed_bodies = set(keyed_bodies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[HAS_KEY] = self.keys.permits(Headers(scope=scope).items())
        if scope[HAS_KEY] or self._is_open(scope):
            await self.application(scope, receive, send)
            return
        if scope["path"].endswith((":predict", TRANSLATIONS)):
            self.count()
        headers = {"www-authenticate": "Bearer", "cache-control": "no-store"}
        response = Response(json.dumps({"error": REFUSAL}), 401, headers, "application/json")
        await response(scope, receive, send)

    def _is_open(self, scope: Scope) -> bool:
        path = scope["path"]
        if scope["method"] == "POST":
            return path in self.keyed_bodies
        is_open = path in self.open_paths or any(form.fullmatch(path) for form in (STATUS, DOWNLOAD))
        return scope["method"] in ("GET", "HEAD") and is_open


class KeyInterceptor(grpc.aio.ServerInterceptor):
    """Answers UNAUTHENTICATED to calls without a key; those for grpc.health.v1 need none."""

    def __init__(self, keys: ApiKeys, count: Callable[[], None]):
        """count: called for each prediction that is refused."""
        self.keys, self.count = keys, count

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler:
        if details.method.startswith(HEALTH) or self.keys.permits(details.invocation_metadata):
            return await continuation(details)
        if details.method.endswith("/Predict"):
            self.count()
        return grpc.stream_stream_rpc_method_handler(refuse)


async def refuse(messages: object, context: grpc.aio.ServicerContext) -> None:
    """Refuse a call before its message is read."""
    await context.abort(grpc.StatusCode.UNAUTHENTICATED, REFUSAL)
