"""What both APIs of the server share: the model, its limits, and which requests are in flight."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator

from .batcher import Batcher
from .errors import Code, RequestError
from .model_folder import ModelFolder, Status
from .options import ServerOptions
from .signature import Arrays, Signature, signature_named, too_many_rows
from .version import Version


class Dispatcher:
    """Answers requests from a ModelFolder within the limits of ServerOptions; used from one event loop."""

    def __init__(self, folder: ModelFolder, options: ServerOptions):
        self.folder, self.options = folder, options
        self.batcher = Batcher(options.workers, options.batch_rows, options.queue_rows, options.queue_bytes)
        self.in_flight, self._is_draining = 0, False

    @contextlib.contextmanager
    def request(self) -> Iterator[float]:
        """Within, a request is in flight: a server that ends waits for it. Yields when it must be answered, by
        `time.monotonic()`. Raises RequestError if the server is ending.
        """
        self.refuse_if_draining()
        self.in_flight += 1
        try:
            yield time.monotonic() + self.options.deadline
        finally:
            self.in_flight -= 1

    def refuse_if_draining(self) -> None:
        if self._is_draining:
            raise RequestError(Code.UNAVAILABLE, "This server is ending: ask another one.")

    def version(self, name: str, number: int | None = None) -> Version:
        """Return a version of the model `name`. Raises RequestError if it is not the one that is served."""
        if name != self.folder.name:
            raise RequestError(Code.NOT_FOUND, f"Servable not found for request: Latest({name})")
        return self.folder.version(number)

    def statuses(self, name: str, number: int | None = None) -> dict[int, Status]:
        """Return the state of every version of a model that was seen, or of one; highest first. Raises RequestError."""
        self.version(name)
        known = self.folder.status
        if number is not None and number not in known:
            raise RequestError(Code.NOT_FOUND, f"Could not find version {number} of model {name}")
        return {version: known[version] for version in sorted(known, reverse=True) if number in (None, version)}

    async def predict(
        self,
        name: str,
        number: int | None,
        signature_name: str,
        read: Callable[[Signature], Arrays],
        outputs: list[str],
        until: float,
    ) -> tuple[Version, Signature, Arrays]:
        """Compute a signature of a model from the inputs that `read` returns for it.

        The version is chosen here and held until the result is there, so that it is not closed in between. `outputs`
        are the wanted ones, all if it is empty; `until` is when the answer must be there. Raises RequestError.
        """
        version = self.version(name, number)
        signature = signature_named(version.signatures, signature_name)
        chosen = signature.chosen(outputs)
        inputs = signature.complete(read(signature))
        if (rows := signature.rows(inputs)) > self.options.request_rows:
            raise too_many_rows(rows, self.options.request_rows)
        version.users += 1
        try:
            seconds = until - time.monotonic()
            return version, signature, await self.batcher.compute(version, signature, chosen, inputs, seconds)
        finally:
            version.users -= 1

    async def drain(self) -> bool:
        """Refuse new requests and wait for those in flight. Returns False if some are left after `drain_seconds`."""
        self._is_draining = True
        until = time.monotonic() + self.options.drain_seconds
        while self.in_flight and time.monotonic() < until:
            await asyncio.sleep(0.02)
        return not self.in_flight

    def close(self) -> None:
        self.batcher.close()
