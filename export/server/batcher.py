"""Computes waiting requests together: a free worker takes a batch of requests that fit each other."""

import asyncio
import concurrent.futures
import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .errors import Code, RequestError, answered_as, too_big
from .signature import Arrays, Signature, size_of
from .version import Version

SHORT = 64  # bytes: texts up to here are of the same length
SIMILAR = 4  # times as long as the shortest text of a batch may the longest be
COMPANY = 0.002  # seconds: the `batch_timeout_micros` of serving/batching_parameters.txt


class Work(NamedTuple):
    """What all tasks of a batch have in common."""

    version: Version
    signature: Signature
    outputs: tuple[str, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """Rows that wait for a worker; equal to itself alone.

    result: a future with Arrays, or with a RequestError. request: the request of which the rows are a part. length:
    bytes of its longest text; None if the task is computed alone.
    """

    work: Work
    inputs: Arrays
    rows: int
    result: asyncio.Future
    request: object
    length: int | None = None


class Batcher:
    """Computes requests in a pool of threads, and joins those that wait; used from one event loop.

    A free worker takes the task that has waited longest, and with it all waiting tasks that fit: the same version,
    signature and outputs, texts of similar length, at most `batch_rows` rows. While another worker computes, it first
    waits `company` seconds for more tasks, unless as many rows wait as a batch may have. A server that computes nothing
    waits for nobody; it joins what the event loop has already read. So batches grow with the load: a row costs much
    less in a batch of many than alone. A long text does not delay short ones, since `are_similar` keeps them apart. A
    long request cannot starve others: after each part, its remaining parts go to the end of the queue.

    Args:
        workers: batches computed at the same time.
        batch_rows: rows of a batch, at most. A request with more rows is computed as several tasks.
        queue_rows: a request is refused if so many rows wait already.
        answer_bytes: bytes of the outputs of a request, at most.
        computed: called with the version, the rows and the seconds of each batch.
        company: seconds that a free worker waits for more tasks while another one computes.
    """

    def __init__(
        self,
        workers: int,
        batch_rows: int,
        queue_rows: int,
        answer_bytes: int,
        computed: Callable[[Version, int, float], None] = lambda version, rows, seconds: None,
        company: float = COMPANY,
    ):
        self._computed, self._company = computed, company
        self.batch_rows, self.queue_rows, self.answer_bytes = batch_rows, queue_rows, answer_bytes
        self._workers, self._free = workers, workers
        self._waiting: dict[Task, None] = {}  # in their order
        self.waiting_rows = 0  # rows that wait for a worker
        self._moment: asyncio.Handle | None = None  # after which what waits begins
        self._pool = concurrent.futures.ThreadPoolExecutor(workers, "batch")
        self._running: dict[asyncio.Task, float] = {}  # with the time when it began

    def stands_still(self, latest: float) -> bool:
        """Return whether every worker began its batch before `latest`, as `time.monotonic()` counts."""
        return len(self._running) >= self._workers and max(self._running.values()) < latest

    async def compute(
        self, version: Version, signature: Signature, outputs: tuple[str, ...], inputs: Arrays, seconds: float
    ) -> Arrays:
        """Return the outputs for every input of a signature.

        Raises RequestError if the queue is full, if there is no result within `seconds`, if the graph fails, or if the
        outputs are too big. In the last case, no further part of the request is computed.
        """
        if self.waiting_rows >= self.queue_rows:
            raise RequestError(
                Code.RESOURCE_EXHAUSTED, f"{self.waiting_rows} rows are waiting already; try again later."
            )
        tasks = self._tasks(version, signature, outputs, inputs)
        self._waiting |= dict.fromkeys(tasks)
        self.waiting_rows += sum(task.rows for task in tasks)
        self._start()
        try:
            async with asyncio.timeout(seconds):
                results, size = [], 0
                for task in tasks:
                    results.append(await task.result)
                    size += size_of(results[-1])
                    if size > self.answer_bytes:
                        raise too_big(self.answer_bytes)
        except TimeoutError:
            raise RequestError(Code.DEADLINE_EXCEEDED, f"There was no result within {seconds:.3g} seconds.") from None
        finally:
            self._forget(tasks)
        return results[0] if len(results) == 1 else concatenated(results)

    def _tasks(self, version: Version, signature: Signature, outputs: tuple[str, ...], inputs: Arrays) -> list[Task]:
        """Divide a request into tasks of at most `batch_rows` rows, or into one task that is computed alone."""
        work, rows = Work(version, signature, outputs), signature.rows(inputs)
        if not signature.can_join(outputs):
            return [Task(work, inputs, rows, new_future(), object())]
        inputs = repeated(inputs, rows)
        starts = range(0, max(rows, 1), self.batch_rows)
        parts = [
            (
                {name: array[start : start + self.batch_rows] for name, array in inputs.items()},
                min(self.batch_rows, rows - start),
            )
            for start in starts
        ]
        request = object()
        return [Task(work, part, count, new_future(), request, longest_text(part)) for part, count in parts]

    def _start(self) -> None:
        """Give free workers what waits: as many rows as a batch may have at once, fewer after a moment."""
        while self._free and self.waiting_rows >= self.batch_rows:
            self._start_batch()
        if self._free and self._waiting and self._moment is None:
            loop = asyncio.get_running_loop()
            if self._free == self._workers:
                self._moment = loop.call_soon(self._start_all)
            else:
                self._moment = loop.call_later(self._company, self._start_all)

    def _start_all(self) -> None:
        """Give free workers all that waits."""
        self._moment = None
        while self._free and self._waiting:
            self._start_batch()

    def _start_batch(self) -> None:
        if self._moment is not None:  # it was for the tasks that begin now
            self._moment.cancel()
            self._moment = None
        batch = self._next_batch()
        self._free -= 1
        running = asyncio.get_running_loop().create_task(self._run(batch))
        self._running[running] = time.monotonic()
        running.add_done_callback(self._running.pop)

    def _next_batch(self) -> list[Task]:
        """Take the first waiting task from the queue, and the tasks that fit it."""
        first = next(iter(self._waiting))
        rows, batch, lengths = first.rows, [first], [] if first.length is None else [first.length]
        for task in self._waiting:
            if rows >= self.batch_rows or not lengths:
                break
            if task is first or task.length is None or task.work != first.work:
                continue
            if rows + task.rows <= self.batch_rows and are_similar(*lengths, task.length):
                batch.append(task)
                rows += task.rows
                lengths.append(task.length)
        self._remove(batch)
        for task in [task for task in self._waiting if task.request is first.request]:  # its other parts go last
            del self._waiting[task]
            self._waiting[task] = None
        return batch

    def _remove(self, tasks: list[Task]) -> None:
        """Remove those of the tasks that wait from the queue."""
        for task in tasks:
            if task in self._waiting:
                del self._waiting[task]
                self.waiting_rows -= task.rows

    async def _run(self, batch: list[Task]) -> None:
        """Compute a batch in a thread, and give each task its result."""
        loop, begun = asyncio.get_running_loop(), time.monotonic()
        results: Sequence[Arrays | RequestError]
        try:
            results = await loop.run_in_executor(self._pool, run_together, batch)
        except Exception as error:  # a fault of this server: no task may wait for ever
            results = [answered_as(error)] * len(batch)
        self._free += 1
        self._computed(batch[0].work.version, sum(task.rows for task in batch), time.monotonic() - begun)
        for task, result in zip(batch, results, strict=True):
            if task.result.done():  # cancelled: its client has left
                continue
            if isinstance(result, RequestError):
                task.result.set_exception(result)
            else:
                task.result.set_result(result)
        if self._free == self._workers:
            self._start_all()
        else:
            self._start()

    def _forget(self, tasks: list[Task]) -> None:
        """Remove the tasks of a request that has ended from the queue."""
        for task in tasks:
            if not task.result.done():
                task.result.cancel()
            elif not task.result.cancelled():
                task.result.exception()  # read it, so that asyncio does not report it
        self._remove(tasks)

    def close(self) -> None:
        """Let each thread end after its batch."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def new_future() -> asyncio.Future:
    return asyncio.get_running_loop().create_future()


def longest_text(inputs: Arrays) -> int:
    """Return the bytes of the longest text."""
    return max((len(text) for array in inputs.values() if array.dtype == object for text in array.flat), default=0)


def are_similar(*lengths: int) -> bool:
    """Return whether texts of so many bytes may be in one batch, which takes as long as its longest text."""
    return max(lengths) <= SIMILAR * max(SHORT, min(lengths))


def run_together(batch: list[Task]) -> Sequence[Arrays | RequestError]:
    """Return the result of each task. Whatever a batch raises, its halves run again, to spare the other tasks."""
    work, total = batch[0].work, sum(task.rows for task in batch)
    inputs = batch[0].inputs
    if len(batch) > 1:
        inputs = concatenated([task.inputs for task in batch])
    try:
        outputs = work.version.run(work.signature, work.outputs, inputs)
        if len(batch) == 1:
            return [outputs]
        if all(array.shape[0] == total for array in outputs.values()):
            return split(outputs, [task.rows for task in batch])
    except Exception as error:
        if len(batch) == 1:
            return [answered_as(error)]
    middle = len(batch) // 2
    return [*run_together(batch[:middle]), *run_together(batch[middle:])]


def repeated(inputs: Arrays, rows: int) -> Arrays:
    """Return inputs of `rows` rows each: an input of a single row is repeated."""
    return {name: array if len(array) == rows else np.repeat(array, rows, axis=0) for name, array in inputs.items()}


def concatenated(parts: list[Arrays]) -> Arrays:
    """Concatenate the arrays of each name."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def split(outputs: Arrays, rows: list[int]) -> list[Arrays]:
    """Undo `concatenated`: return the part of each task."""
    ends = np.cumsum(rows)
    return [
        {name: array[end - count : end] for name, array in outputs.items()}
        for end, count in zip(ends, rows, strict=True)
    ]
