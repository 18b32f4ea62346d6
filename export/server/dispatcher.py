"""What both APIs of the server share: which version answers, the limits of requests, and what is in flight."""

import asyncio
import concurrent.futures
import contextlib
import contextvars
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from .batcher import Batcher
from .bounds import check_bounds
from .bytes_in_flight import BytesInFlight, Share
from .errors import Code, RequestError, shown
from .messages import sentences_in
from .metrics import Metrics, outcome
from .model_folder import Status
from .models import Models
from .options import ServerOptions
from .paragraphs import has_spans
from .protection import answered
from .request_log import Record, RequestLog
from .signature import Arrays, Signature, signature_named, size_of, too_many_rows, too_many_sentences
from .version import Version

BIG = 1 << 16  # bytes: to read or to write as many in the event loop would delay all other requests
STILL = 2  # deadlines: a thread that takes longer for one batch, which nobody waits for by then, stands still
RECORD: contextvars.ContextVar[Record] = contextvars.ContextVar("RECORD")  # of the request that a task answers
NOBODY = Record("", "")  # of what no request asks, such as the page

Answer = TypeVar("Answer", covariant=True)


class Codec(Protocol[Answer]):
    """One request for a prediction as an API writes it, and the answer in the same notation.

    signature_name: "" is `serving_default`. output_names: the outputs to compute; none means all of them.
    """

    @property
    def signature_name(self) -> str: ...

    @property
    def output_names(self) -> Sequence[str]: ...

    def read(self, signature: Signature) -> Arrays:
        """Return the inputs of the request as arrays. Raises RequestError if the signature cannot take them."""

    def write(self, outputs: Arrays, most: int) -> Answer:
        """Return the answer with these outputs.

        Raises RequestError if the notation cannot express them, or needs more than `most` bytes.
        """


class Question(NamedTuple, Generic[Answer]):
    """A request that has been read. size: bytes of the inputs."""

    codec: Codec[Answer]
    signature: Signature
    output_names: tuple[str, ...]
    inputs: Arrays
    size: int


class Dispatcher:
    """Answers requests to Models within the limits of ServerOptions; used from one event loop.

    Raises ExportError if the file of requests cannot be written to.
    """

    def __init__(self, models: Models, options: ServerOptions):
        self.models, self.options = models, options
        self.log = RequestLog(options.log_requests) if options.log_requests else None
        self.metrics = metrics = Metrics(models)
        self.batcher = Batcher(
            options.workers, options.batch_rows, options.queue_rows, options.answer_bytes, metrics.computed
        )
        self.bytes_in_flight = BytesInFlight(options.bytes_in_flight)
        metrics.watch("waiting_rows", "Rows that wait for a worker.", lambda: self.batcher.waiting_rows)
        metrics.watch("requests_in_flight", "Requests that are being answered.", lambda: self.in_flight)
        metrics.watch("bytes_in_flight", "Bytes of requests and answers held.", lambda: self.bytes_in_flight.held)
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "codec")
        self.in_flight, self._is_draining = 0, False
        self._reading_since: float | None = None  # as `time.monotonic()` counts; None: the thread waits

    @contextlib.contextmanager
    def request(self, entrypoint: str, api: str = "Predict") -> Iterator[float]:
        """Within, a request is in flight: `drain` waits for it. Yields the time by which it must be answered, as
        `time.monotonic()` counts. Raises RequestError if the server is shutting down.

        entrypoint, api: "REST" or "GRPC", and the call, as metrics name them.
        """
        self.refuse_if_draining()
        self.in_flight += 1
        begun, reason = time.monotonic(), None
        record = Record(entrypoint, api)
        RECORD.set(record)
        try:
            yield begun + self.options.deadline
        except BaseException as error:
            reason = error
            raise
        finally:
            self.in_flight -= 1
            seconds = time.monotonic() - begun
            self.metrics.answered(record.model, api, entrypoint, reason, seconds)
            if self.log is not None:
                self.log.write(record, outcome(reason), seconds)

    def refuse_if_draining(self) -> None:
        """Raise RequestError if the server is shutting down."""
        if self._is_draining:
            raise RequestError(Code.UNAVAILABLE, "This server is shutting down: ask another one.")

    def is_well(self) -> bool:
        """Return whether it answers new requests: it is not shutting down, and its threads move."""
        return not self._is_draining and not self.stands_still()

    def stands_still(self) -> bool:
        """Return whether no thread that computes, or the one that reads, has ended anything for STILL deadlines.

        Then no request is answered in time any more, and only another process helps.
        """
        latest = time.monotonic() - STILL * self.options.deadline
        return self.batcher.stands_still(latest) or (self._reading_since or latest) < latest

    def refuse_unless_well(self) -> None:
        """Raise RequestError if the server is shutting down, or stands still."""
        self.refuse_if_draining()
        if self.stands_still():
            seconds = STILL * self.options.deadline
            raise RequestError(
                Code.UNAVAILABLE, f"No batch has ended for {seconds:g} seconds: start this server again."
            )

    def version(self, name: str, choice: int | str | None = None) -> Version:
        """Return a version of the model `name`, by its number or its label, the highest one by default.

        Raises RequestError if it is not served.
        """
        record = RECORD.get(NOBODY)
        record.model = shown(name)
        version = self.models.version(name, choice)
        record.version = version.number
        return version

    @contextlib.contextmanager
    def version_in_use(self, name: str, choice: int | str | None) -> Iterator[Version]:
        """Within, `version(name, choice)` stays in memory, even after another version has replaced it."""
        version = self.version(name, choice)
        version.users += 1
        try:
            yield version
        finally:
            version.users -= 1

    def statuses(self, name: str, number: int | None = None) -> dict[int, Status]:
        """Return the state of every version of a model so far, or of one; highest first. Raises RequestError."""
        RECORD.get(NOBODY).model = shown(name)
        return self.models.statuses(name, number)

    async def question(
        self, version: Version, codec_of: Callable[[Any, int], Codec[Answer]], body: Any, size: int, until: float
    ) -> Question[Answer]:
        """Return what a version is asked by a body of `size` bytes.

        codec_of: the codec of a body that has at most so many rows. Raises RequestError.
        """
        most_rows = self.options.request_rows

        def read() -> Question[Answer]:
            codec = codec_of(body, most_rows)
            signature = signature_named(version.signatures, codec.signature_name)
            output_names = signature.output_names(codec.output_names)
            inputs = signature.complete(codec.read(signature))
            check_bounds(inputs)
            for named in (answered, has_spans):
                output_names = named(output_names, inputs, bool(codec.output_names))
            if (rows := signature.rows(inputs)) > most_rows:
                raise too_many_rows(rows, most_rows)
            if (sentences := sentences_in(signature, inputs)) > most_rows:
                raise too_many_sentences(sentences, most_rows)
            return Question(codec, signature, output_names, inputs, size_of(inputs))

        question = await self.off_the_loop(read, size, until)
        record = RECORD.get(NOBODY)
        record.signature, record.rows = question.signature.name, question.signature.rows(question.inputs)
        if self.log is not None and self.options.log_text:
            record.inputs = question.inputs
        return question

    async def predict(
        self, version: Version, question: Question[Answer], share: Share, until: float, is_stopped: bool = False
    ) -> Answer:
        """Return the answer of a version, which is in use.

        `until`: the time by which it must be answered. is_stopped: whether this server chose where translations end, so
        that they do not count as cut. Raises RequestError.
        """
        codec, signature, output_names, inputs, size = question
        share.resize(size)
        seconds = until - time.monotonic()
        outputs = await self.batcher.compute(version, signature, output_names, inputs, seconds)
        if not is_stopped:
            self.metrics.cut(version, int(outputs["is_cut"].sum()) if "is_cut" in outputs else 0)
        size = size_of(outputs)
        share.resize(2 * size)  # the outputs, and the answer that is written from them
        return await self.off_the_loop(lambda: codec.write(outputs, self.options.answer_bytes), size, until)

    async def off_the_loop(self, function: Callable[[], Any], size: int, until: float) -> Any:
        """Return the result of a function that reads or writes `size` bytes.

        If they are many, it runs in a thread: one for all requests, since Python computes in one thread at a time, and
        so that only one of them needs the memory for it. Raises RequestError if its turn does not come in time.
        """
        if size <= BIG:
            return function()

        def noted() -> Any:
            self._reading_since = time.monotonic()
            try:
                return function()
            finally:
                self._reading_since = None

        try:
            async with asyncio.timeout(until - time.monotonic()):
                return await asyncio.get_running_loop().run_in_executor(self._thread, noted)
        except TimeoutError:
            raise RequestError(Code.DEADLINE_EXCEEDED, "The request could not be read or answered in time.") from None

    async def drain(self) -> bool:
        """Refuse new requests and wait for those in flight. Returns False if some are left after `drain_seconds`."""
        self._is_draining = True
        until = time.monotonic() + self.options.drain_seconds
        while self.in_flight and time.monotonic() < until:
            await asyncio.sleep(0.02)
        return not self.in_flight

    def close(self) -> None:
        """Stop the threads that compute, read and write."""
        self.batcher.close()
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self.log is not None:
            self.log.close()
