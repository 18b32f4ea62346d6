"""What a worker does with one part of the input: lines in, as many lines out, in their order; or rows of a table."""

import concurrent.futures
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from keras_transformer.pieces.batching import batches_by_length, why_no_text

from .engines import Outputs, Refused, opened
from .formats import Format, RowError
from .works import Rows, Work

BATCHES_AT_ONCE = 25  # that are read, sorted by length and computed before the next lines are read
Result = dict[str, Any] | RowError  # the outputs of a line by name, or why it has none


class Job(NamedTuple):
    """What every worker gets. work: what is done with a batch. engine: of the export, a key of ENGINES, or ""."""

    work: Work
    format: Format
    batch_size: int
    engine: str


def lines_of_part(job: Job, done: frozenset[int], number: int, lines: Iterable[Any]) -> Iterator[Any]:
    """Yield the lines of output of a part; none if its number is among those that are `done`."""
    if number not in done:
        threads = cores_of_task()
        compute = job.work.on(opened(job.engine, threads))
        yield from output_lines(job, compute, lines, threads)


def cores_of_task() -> int:
    """Return how many cores Spark gives the task that runs here: spark.task.cpus."""
    from pyspark import TaskContext

    task = TaskContext.get()
    return 1 if task is None else task.cpus()


def output_lines(job: Job, compute: Callable[[Rows], Outputs], lines: Iterable[Any], threads: int = 1) -> Iterator[Any]:
    """Yield one line of output for each line of input, in their order.

    compute: returns the outputs of a batch of rows, and may raise Refused. threads: batches that are computed at once.
    """
    lines = iter(lines)
    while group := list(itertools.islice(lines, BATCHES_AT_ONCE * job.batch_size)):
        for line, result in zip(group, results_of(job, compute, group, threads), strict=True):
            if isinstance(result, RowError):
                yield job.format.refuse(line, job.work.outputs, str(result))
            else:
                yield job.format.write(line, result)


def results_of(job: Job, compute: Callable[[Rows], Outputs], group: list[Any], threads: int) -> list[Result]:
    """Return the result of each line, computed in batches of similar length, the longest first."""
    results: dict[int, Result] = {}
    rows: dict[int, tuple[str, ...]] = {}
    for index, line in enumerate(group):
        try:
            rows[index] = checked_row(job.format.read(line))
        except RowError as error:
            results[index] = error
    lengths = {index: sum(map(len, row)) for index, row in rows.items()}
    size = min(job.batch_size, -(-len(rows) // threads) or 1)
    batches = list(batches_by_length(lengths, size))[::-1]

    def compute_batch(indices: list[int]) -> list[Result]:
        return computed(compute, [rows[index] for index in indices])

    with concurrent.futures.ThreadPoolExecutor(threads) as executor:
        for indices, of_batch in zip(batches, executor.map(compute_batch, batches), strict=True):
            results.update(zip(indices, of_batch, strict=True))
    return [results[index] for index in range(len(group))]


def checked_row(row: tuple[str, ...]) -> tuple[str, ...]:
    """Return a row. Raises RowError if one of its texts has half of a character, which an escape of JSON can write."""
    for text in row:
        if why := why_no_text(text, "The row"):
            raise RowError(why)
    return row


def computed(compute: Callable[[Rows], Outputs], rows: Rows) -> list[Result]:
    """Return the result of each row. A batch that is refused is halved, until the row that is the cause is alone."""
    try:
        return list(compute(rows))
    except Refused as error:
        if len(rows) == 1:
            return [RowError(str(error))]
        half = len(rows) // 2
        return computed(compute, rows[:half]) + computed(compute, rows[half:])
