"""What both APIs of the server share: which version answers, the limits of requests, and how many are in flight."""

import asyncio
import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from .batcher import Batcher
from .errors import Code, RequestError
from .model_folder import ModelFolder, Status
from .options import ServerOptions
from .signature import Arrays, Signature, signature_named, too_many_rows
from .version import Version

Answer = TypeVar("Answer", covariant=True)


class Codec(Protocol[Answer]):
    """One request for a prediction as an API writes it, and the answer in the same notation.

    signature_name: "" is `serving_default`. output_names: the outputs to compute; none means all of them.
    """

    signature_name: str
    output_names: Sequence[str]

    def read(self, signature: Signature) -> Arrays:
        """Return the inputs of the request as arrays. Raises RequestError if the signature cannot take them."""

    def write(self, outputs: Arrays) -> Answer:
        """Return the answer with these outputs. Raises RequestError if the notation cannot express them."""


class Dispatcher:
    """Answers requests from a ModelFolder within the limits of ServerOptions; used from one event loop."""

    def __init__(self, folder: ModelFolder, options: ServerOptions):
        self.folder, self.options = folder, options
        self.batcher = Batcher(options.workers, options.batch_rows, options.queue_rows, options.queue_bytes)
        self.in_flight, self._is_draining = 0, False

    @contextlib.contextmanager
    def request(self) -> Iterator[float]:
        """Within, a request is in flight: `drain` waits for it. Yields the time by which it must be answered, as
        `time.monotonic()` counts. Raises RequestError if the server is shutting down.
        """
        self.refuse_if_draining()
        self.in_flight += 1
        try:
            yield time.monotonic() + self.options.deadline
        finally:
            self.in_flight -= 1

    def refuse_if_draining(self) -> None:
        """Raise RequestError if the server is shutting down."""
        if self._is_draining:
            raise RequestError(Code.UNAVAILABLE, "This server is shutting down: ask another one.")

    def version(self, name: str, number: int | None = None) -> Version:
        """Return a version of the model `name`. Raises RequestError if it is not the one that is served."""
        if name != self.folder.name:
            raise RequestError(Code.NOT_FOUND, f"Servable not found for request: Latest({name})")
        return self.folder.version(number)

    @contextlib.contextmanager
    def version_in_use(self, name: str, number: int | None = None) -> Iterator[Version]:
        """Within, `version(name, number)` stays in memory, even after another version has replaced it."""
        version = self.version(name, number)
        version.users += 1
        try:
            yield version
        finally:
            version.users -= 1

    def statuses(self, name: str, number: int | None = None) -> dict[int, Status]:
        """Return the state of every version of a model so far, or of one; highest first. Raises RequestError."""
        self.version(name)
        known = self.folder.status
        if number is not None and number not in known:
            raise RequestError(Code.NOT_FOUND, f"Could not find version {number} of model {name}")
        return {version: known[version] for version in sorted(known, reverse=True) if number in (None, version)}

    async def predict(self, version: Version, codec: Codec[Answer], until: float) -> Answer:
        """Return the answer of a version, which is in use, to the request of a codec.

        `until`: the time by which it must be answered. Raises RequestError.
        """
        signature = signature_named(version.signatures, codec.signature_name)
        output_names = signature.output_names(codec.output_names)
        inputs = signature.complete(codec.read(signature))
        if (rows := signature.rows(inputs)) > self.options.request_rows:
            raise too_many_rows(rows, self.options.request_rows)
        seconds = until - time.monotonic()
        return codec.write(await self.batcher.compute(version, signature, output_names, inputs, seconds))

    async def drain(self) -> bool:
        """Refuse new requests and wait for those in flight. Returns False if some are left after `drain_seconds`."""
        self._is_draining = True
        until = time.monotonic() + self.options.drain_seconds
        while self.in_flight and time.monotonic() < until:
            await asyncio.sleep(0.02)
        return not self.in_flight

    def close(self) -> None:
        """Stop the threads that compute."""
        self.batcher.close()
