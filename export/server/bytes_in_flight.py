"""The memory of requests and answers: its bound over both protocols, and who gives way when it is reached."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator

from .errors import Code, RequestError

PATIENCE = 0.25  # seconds: a request that arrives for longer gives way to others


class BytesInFlight:
    """Counts the bytes of all requests and answers that the server holds; used from one event loop.

    When `most` is reached, a request that is still arriving after PATIENCE gives way, the oldest first. So clients that
    begin requests and never end them cannot lock out others. If there is none, the request that needs more is refused.
    """

    def __init__(self, most: int):
        self.most, self.held = most, 0
        self.arriving: dict[Share, None] = {}  # oldest first

    @contextlib.contextmanager
    def share(self) -> Iterator["Share"]:
        """Within, a request has a Share, of no bytes at first."""
        share = Share(self)
        try:
            yield share
        finally:
            share.resize(0)

    def make_room(self, size: int, asking: "Share") -> None:
        """Let requests give way until there is room for `size` more bytes. Raises RequestError if there is none."""
        latest = time.monotonic() - PATIENCE
        while self.held + size > self.most:
            slow = next((share for share in self.arriving if share is not asking and share.begun < latest), None)
            if slow is None:
                raise too_many_bytes()
            slow.give_way()


class Share:
    """The bytes that one request holds: those that have arrived, then those of its inputs, then those of its answer."""

    def __init__(self, whole: BytesInFlight):
        self.whole, self.size, self.begun = whole, 0, time.monotonic()
        self._has_given_way = False

    def resize(self, size: int) -> None:
        """Hold so many bytes from now on. Raises RequestError if they are more than before and there is no room."""
        if size > self.size:
            self.whole.make_room(size - self.size, self)
        self.whole.held += size - self.size
        self.size = size

    @contextlib.asynccontextmanager
    async def arriving(self, until: float) -> AsyncIterator[None]:
        """Within, the request arrives. Raises TimeoutError at `until`, and RequestError if it gives way to others."""
        try:
            async with asyncio.timeout(until - time.monotonic()) as self._timeout:
                self.whole.arriving[self] = None
                try:
                    yield
                finally:
                    self.whole.arriving.pop(self, None)
        except TimeoutError:
            if self._has_given_way:
                raise too_many_bytes() from None
            raise

    def give_way(self) -> None:
        """End the arrival of this request."""
        self._has_given_way = True
        self.whole.arriving.pop(self)
        self.resize(0)
        self._timeout.reschedule(asyncio.get_running_loop().time())


def too_many_bytes() -> RequestError:
    """Return the error of a request for which there is no memory."""
    return RequestError(Code.RESOURCE_EXHAUSTED, "Too many bytes are in flight; try again later.")
