"""The story of every command: files in, the same lines with what an export made of them out, on Spark."""

import functools
import logging
import math
import pathlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from keras_transformer.commands.signals import handling
from keras_transformer.ground.errors import Interrupted
from keras_transformer.ground.files import sha256_of_folder
from keras_transformer.runs.lite_folder import Description, LiteFolder, is_lite_folder
from keras_transformer.runs.versions import find_export, languages_in
from keras_transformer.text.asks import NOTHING

from .corpora import Lines, Tables, corpus_of
from .duplicates import MarkedRows, marked
from .engines import Refused, opened
from .errors import ClusterError
from .formats import Format
from .output import Output
from .part import Job, cores_of_task, lines_of_part
from .session import spark, try_a_worker
from .storage import Storage, StoredFile
from .works import Clean, Work

log = logging.getLogger("cluster")

SECONDS_BETWEEN_NEWS = 10
FEWEST_PARTS, SMALLEST_PART = 4, 2**16  # per core, so that they end together; bytes, some thousand lines


class Place(NamedTuple):
    """Where a command reads, writes and computes.

    source: a file, a folder or a pattern. target: a new folder. master: the URL of Spark's master, None for this
    machine. settings: further ones of Spark, each NAME=VALUE. part_bytes: of the input, in one part.
    """

    source: str
    target: str
    master: str | None
    settings: Sequence[str]
    part_bytes: int


class Request(NamedTuple):
    """What shall be done. format: text, jsonl, tsv or parquet. columns: what the work needs, by name or number."""

    work: Work
    format: str
    columns: Sequence[str]
    batch_size: int


def run(folder: pathlib.Path | None, request: Request, place: Place) -> None:
    """Do the work on all lines of the input, with the export in a folder, or without one if it needs none.

    Parts that an earlier, interrupted call finished are kept.

    Raises UserError before Spark starts if there is no export, or for a language that it lacks, and ClusterError before
    anything is computed if a worker cannot do it, and if Spark gives up later.
    """
    export = None if folder is None else find_export(folder)
    if export is not None:
        check_languages(request.work, export)
    with (
        stopped_by_signals(place.target) as stopped,
        spark(place.master, place.settings, export, stopped) as context,
    ):
        context.setLogLevel("ERROR")
        files = Storage(context).input_files(place.source)
        output = Output(Storage(context), place.target)
        parts = output.begun().get("parts") or parts_of(files, place.part_bytes, context.defaultParallelism)
        paths = [file.path for file in files]
        corpus = corpus_of(context, request.format, request.columns, request.work.outputs, paths)
        job = job_of(request, corpus.format, export)
        plan = {"input": [list(file) for file in files], "parts": parts, "export": export and sha256_of_folder(export)}
        plan |= described(job)
        output.check(plan)
        try_a_worker(context, functools.partial(check_worker, job))
        output.begin(plan)
        lines = corpus.read(paths, parts)
        done = frozenset(output.finished_parts())
        total = lines.getNumPartitions()
        log.info("%s parts, %s of them finished", f"{total:,}", f"{len(done):,}")
        if len(done) < total:
            with news(context, total):
                read = marked(lines, corpus.format) if is_marked(request.work) else lines
                written = read.mapPartitionsWithIndex(functools.partial(lines_of_part, job, done))
                corpus.write(written, output.next_attempt(done))
        check_lines(corpus, lines.count(), output.finished_parts())
        output.publish()
    print(output.folder)


def check_languages(work: Work, export: pathlib.Path) -> None:
    """Raises UserError if the work names a language that the export lacks, before Spark starts."""
    described = LiteFolder(export).description
    languages = Description.load(described).languages if is_lite_folder(export) else languages_in(export)
    ask = getattr(work, "ask", NOTHING)
    languages.chosen(ask.source_language, ask.target_language)


def parts_of(files: Sequence[StoredFile], part_bytes: int, cores: int) -> int:
    """Return into how many parts the input is divided: by its bytes, and so that no core waits long for the last one.

    It is a multiple of the cores, and at least FEWEST_PARTS for each if these have SMALLEST_PART bytes.
    """
    size = sum(file.size for file in files)
    rounds = math.ceil(size / part_bytes / cores)
    return cores * max(rounds, min(FEWEST_PARTS, size // (SMALLEST_PART * cores)))


def job_of(request: Request, format: Format, export: pathlib.Path | None) -> Job:
    """Return what every worker gets."""
    engine = "" if export is None else "lite" if is_lite_folder(export) else "graph"
    return Job(request.work, MarkedRows(format) if is_marked(request.work) else format, request.batch_size, engine)


def is_marked(work: Work) -> bool:
    """Return whether the work needs to know which rows came before."""
    return isinstance(work, Clean) and work.duplicates


def described(job: Job) -> dict[str, Any]:
    """Return what of a job the output depends on, as JSON has it."""
    values = {"work": job.work, "format": job.format, "batch_size": job.batch_size}
    return {name: repr(value) for name, value in values.items()}


def check_worker(job: Job, _: int) -> None:
    """Open the export on a worker, for a first answer. Raises ClusterError if the worker cannot do the job."""
    try:
        job.work.on(opened(job.engine, cores_of_task()))([job.work.example])
    except Refused as error:
        raise ClusterError(f"The export refuses these options: {error}") from None


def check_lines(corpus: Lines | Tables, count: int, parts: dict[int, str]) -> None:
    """Read all parts again. Raises ClusterError if they have not one line for each line of input.

    Logs how many lines have an error.
    """
    is_refused = corpus.format.is_refused
    total, refused = (
        corpus.read(list(parts.values()))
        .map(lambda line: (1, int(is_refused(line))))
        .fold((0, 0), lambda one, other: (one[0] + other[0], one[1] + other[1]))
    )
    if total != count:
        raise ClusterError(
            f"The input has {count:,} lines and the parts have {total:,}: a part is damaged, or the input has changed. "
            "Remove the folder of the output and run the command again."
        )
    log.info("%s lines, %s of them with an error", f"{total:,}", f"{refused:,}")


@contextmanager
def news(context: Any, total: int) -> Iterator[None]:
    """Within, log now and then how many parts are finished."""
    ended = threading.Event()

    def tell() -> None:
        tracker, before = context.statusTracker(), 0
        while not ended.wait(SECONDS_BETWEEN_NEWS):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            now = sum(stage.numCompletedTasks for stage in stages if stage)
            if now > before:
                log.info("%s of %s parts", f"{now:,}", f"{total:,}")
            before = now

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def stopped_by_signals(target: str) -> Iterator[threading.Event]:
    """Within, Ctrl-C and SIGTERM raise Interrupted. Yields what is set as soon as one has come.

    py4j turns what is raised while Java computes into an error of its own, and logs it with its traces: so whatever
    ends the work after a signal is Interrupted, and nothing is logged any more.
    """
    stopped = threading.Event()
    reason = f"Stopped. {target} keeps the parts that are finished: run the same command again to go on."

    def stop(number: int, frame: Any) -> None:
        stopped.set()
        logging.disable()
        raise Interrupted(reason)

    with handling(stop):
        try:
            yield stopped
        except Exception:  # any: what is raised because of the signal is of the signal; else it is raised again
            if stopped.is_set():
                raise Interrupted(reason) from None
            raise
