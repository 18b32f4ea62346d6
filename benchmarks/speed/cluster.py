"""Lines per second of `keras-transformer cluster translate` beside `translate-export` on the same machine.

    python -m benchmarks.speed.cluster exports/numbers --lines runs/numbers/validation.src.txt

Translates the lines with the export alone, on all cores, then on clusters of one and two workers of one core each. Each
way also translates a few of the lines, so that its start can be told from what a line takes.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import typer

from benchmarks.errors import BenchmarkError
from benchmarks.result_files import RESULTS, command_line, write_result
from benchmarks.speed.spark_cluster import HERE, SparkCluster
from keras_transformer.commands.console import command_app, exit_codes
from keras_transformer.ground.machine import package_versions, processor_and_cores

app = command_app()
SECONDS_BETWEEN_LOOKS = 0.2  # at the memory of the processes
SHARE_OF_START = 50  # one in so many lines is translated to measure the start
WORKERS = (1, 2)
MOST_OVERHEAD = 15  # per cent, of two workers over the export alone
HEAD = """# A corpus on Spark

`keras-transformer translate-export` on all cores of one machine, and `keras-transformer cluster translate` on a
standalone cluster whose workers are processes of the same machine with one core each. The start is what no line adds
to: Spark, the loading of the export in each worker, the first batch. It is what {few:,} lines take, less their share of
the other lines' time. Lines per second are those after the start.
"""


class Measurement(NamedTuple):
    """name: of the way. seconds: of the command. start: of these, before the first line. rate: lines per second after.

    python, java: the most memory of a process of an executor, bytes; 0 without one.
    """

    name: str
    seconds: float
    start: float
    rate: float
    python: int = 0
    java: int = 0


class Corpus(NamedTuple):
    """Files with so many lines each: all of them, and the few that measure the start."""

    path: pathlib.Path
    count: int
    few_path: pathlib.Path
    few: int

    def measurement(self, name: str, seconds: float, few_seconds: float, python: int = 0, java: int = 0) -> Measurement:
        """Return the measurement of a way that took so long for all lines, and for the few. Raises BenchmarkError."""
        if seconds <= few_seconds:
            raise BenchmarkError(f"{name}: {self.few} lines took as long as {self.count}. Take more with --count.")
        rate = (self.count - self.few) / (seconds - few_seconds)
        return Measurement(name, seconds, few_seconds - self.few / rate, rate, python, java)


@app.command(no_args_is_help=True)
def measure(
    export: Annotated[pathlib.Path, typer.Argument(metavar="EXPORT", help="The folder of an export.")],
    lines: Annotated[pathlib.Path, typer.Option(metavar="FILE", help="Sentences, one per line.")],
    count: Annotated[int, typer.Option(help="How many lines are translated: those of the file, again and again.")] = (
        100_000
    ),
    to: Annotated[
        pathlib.Path, typer.Option(metavar="FILE", help="The table; its numbers go into the same name with .json.")
    ] = RESULTS / "cluster.md",
):
    """Measure lines per second on clusters of one and two workers."""
    with exit_codes(), tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        corpus = written_corpus(folder, lines.read_text(encoding="utf-8").splitlines(), count)
        measurements = [alone(export, corpus), *(on_workers(export, corpus, folder, workers) for workers in WORKERS)]
        write_result(to, as_markdown(measurements, corpus))
        write_result(to.with_suffix(".json"), as_json(measurements, corpus))
        print(to)


def written_corpus(folder: pathlib.Path, lines: Sequence[str], count: int) -> Corpus:
    """Write `count` lines, those given again and again, and the first few of them."""
    few = max(count // SHARE_OF_START, 1)
    corpus = Corpus(folder / "corpus.txt", count, folder / "few.txt", few)
    for path, number in ((corpus.path, count), (corpus.few_path, few)):
        path.write_text("".join(f"{lines[index % len(lines)]}\n" for index in range(number)), encoding="utf-8")
    return corpus


def alone(export: pathlib.Path, corpus: Corpus) -> Measurement:
    """Measure `translate-export`."""

    def seconds_for(path: pathlib.Path) -> float:
        started = time.perf_counter()
        with path.open("rb") as file, open(os.devnull, "wb") as nothing:
            run = subprocess.run(
                [sys.executable, "-m", "keras_transformer", "translate-export", str(export)], stdin=file, stdout=nothing
            )
        if run.returncode:
            raise BenchmarkError(f"translate-export ended with {run.returncode}.")
        return time.perf_counter() - started

    few_seconds = seconds_for(corpus.few_path)
    return corpus.measurement("`translate-export`, all cores", seconds_for(corpus.path), few_seconds)


def on_workers(export: pathlib.Path, corpus: Corpus, folder: pathlib.Path, workers: int) -> Measurement:
    """Measure `cluster translate` on a new cluster."""
    home = folder / f"cluster{workers}"
    home.mkdir()

    def seconds_for(path: pathlib.Path) -> float:
        out = home / f"{path.stem}.out"
        command = ["cluster", "translate", export, "--from", path, "--to", out, "--master", cluster.url]
        options = ["--conf", "spark.executor.memory=1g", "--conf", "spark.ui.enabled=false"]
        started = time.perf_counter()
        run = subprocess.run(
            [sys.executable, "-m", "keras_transformer", *map(str, [*command, *options])], env=os.environ | HERE
        )
        if run.returncode:
            raise BenchmarkError(f"cluster translate ended with {run.returncode} on {workers} workers.")
        return time.perf_counter() - started

    with SparkCluster(home, workers) as cluster:
        few_seconds = seconds_for(corpus.few_path)
        peak = Peak(home)
        seconds = seconds_for(corpus.path)
        python, java = peak.ended()
    return corpus.measurement(f"`cluster translate`, {workers} x 1 core", seconds, few_seconds, python, java)


class Peak:
    """The most memory of a Python and of a Java of executors, which run in a folder, looked at now and then."""

    def __init__(self, folder: pathlib.Path):
        self._folder, self._bytes, self._is_over = folder.resolve(), {"python": 0, "java": 0}, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._is_over.wait(SECONDS_BETWEEN_LOOKS):
            for process in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    if pathlib.Path(os.readlink(process / "cwd")).is_relative_to(self._folder):
                        self._note((process / "cmdline").read_bytes(), (process / "status").read_text())
                except (OSError, IndexError):  # it has ended
                    continue

    def _note(self, command: bytes, status: str) -> None:
        kind = "java" if b"CoarseGrainedExecutorBackend" in command else "python"
        if kind == "java" or b"pyspark" in command.partition(b"\0")[2]:
            most = int(status.partition("VmHWM:")[2].split()[0]) * 1024
            self._bytes[kind] = max(self._bytes[kind], most)

    def ended(self) -> tuple[int, int]:
        """Stop looking. Returns bytes of Python and of Java."""
        self._is_over.set()
        self._thread.join()
        return self._bytes["python"], self._bytes["java"]


def overhead(measurements: Sequence[Measurement]) -> float:
    """Return how much longer a line takes on the most workers than by the export alone, in per cent."""
    return 100 * (measurements[0].rate / measurements[-1].rate - 1)


def as_markdown(measurements: Sequence[Measurement], corpus: Corpus) -> str:
    """Return the page."""
    rows = [
        f"| {each.name} | {each.seconds:.0f} | {each.start:.0f} | {each.rate:,.0f} | {mebibytes(each.python)} | "
        f"{mebibytes(each.java)} |"
        for each in measurements
    ]
    versions = package_versions(["pyspark", "tensorflow", "tensorflow-text", "ai-edge-litert"])
    percent = overhead(measurements)
    return "\n".join(
        [
            HEAD.format(few=corpus.few),
            f"{corpus.count:,} lines on {processor_and_cores()}; "
            + ", ".join(f"{name} {version}" for name, version in versions.items())
            + ".\n",
            "| way | seconds | of these the start | lines per second | Python of an executor | its Java |",
            "|---|---:|---:|---:|---:|---:|",
            *rows,
            "",
            f"On two workers a line takes {compared(percent)} by the export alone; the bar of "
            f"{MOST_OVERHEAD} per cent is {'kept' if percent <= MOST_OVERHEAD else 'missed'}.",
            "",
            f"`{command_line('speed.cluster')}`",
            "",
        ]
    )


def compared(percent: float) -> str:
    """Return so many per cent more time, or less if it is negative, as words before what it is compared with."""
    rounded = round(percent)
    return f"{abs(rounded)} per cent {'longer' if rounded > 0 else 'less'} than" if rounded else "as long as"


def mebibytes(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB" if count else ""


def as_json(measurements: Sequence[Measurement], corpus: Corpus) -> str:
    """Return the numbers of the page."""
    values = {
        "command": command_line("speed.cluster"),
        "lines": corpus.count,
        "lines_of_start": corpus.few,
        "overhead_per_cent": overhead(measurements),
        "ways": [each._asdict() for each in measurements],
    }
    return json.dumps(values, indent=2) + "\n"


def main() -> None:
    app(prog_name="python -m benchmarks.speed.cluster")


if __name__ == "__main__":
    main()
