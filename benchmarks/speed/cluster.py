"""Lines per second of `keras-transformer cluster translate` beside `translate-export` on the same machine.

    python -m benchmarks.speed.cluster exports/multi30k --lines data/multi30k/train.en

Translates the lines with the export alone, on all cores, then on clusters of one and two workers of one core each.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from typing import Annotated, NamedTuple

import typer

from benchmarks.errors import BenchmarkError
from benchmarks.result_files import RESULTS, command_line, write_result
from benchmarks.speed.spark_cluster import HERE, SparkCluster
from keras_transformer.commands.console import command_app, exit_codes
from keras_transformer.machine import package_versions, processor_and_cores

app = command_app()
SECONDS_BETWEEN_LOOKS = 0.2  # at the memory of the processes
HEAD = """# A corpus on Spark

`keras-transformer translate-export` on all cores of one machine, and `keras-transformer cluster translate` on a
standalone cluster whose workers are processes of the same machine with one core each. Seconds are those of the whole
command, with its start, the loading of the export in each worker, and the reading of all parts at the end.
"""


class Measurement(NamedTuple):
    """name: of the way. seconds: of the command. memory: of the largest Python of a worker, bytes; 0 without one."""

    name: str
    seconds: float
    memory: int


@app.command(no_args_is_help=True)
def measure(
    export: Annotated[pathlib.Path, typer.Argument(metavar="EXPORT", help="The folder of an export.")],
    lines: Annotated[pathlib.Path, typer.Option(metavar="FILE", help="Sentences, one per line.")],
    count: Annotated[int, typer.Option(help="How many lines are translated: those of the file, again and again.")] = (
        100_000
    ),
    to: Annotated[pathlib.Path, typer.Option(metavar="FILE", help="The table.")] = RESULTS / "cluster.md",
):
    """Measure lines per second on clusters of one and two workers."""
    with exit_codes(), tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        text = lines.read_text(encoding="utf-8").splitlines()
        corpus = folder / "corpus.txt"
        corpus.write_text("".join(f"{text[index % len(text)]}\n" for index in range(count)), encoding="utf-8")
        measurements = [alone(export, corpus), *(on_workers(export, corpus, folder, workers) for workers in (1, 2))]
        write_result(to, as_markdown(measurements, count))
        print(to)


def alone(export: pathlib.Path, corpus: pathlib.Path) -> Measurement:
    """Measure `translate-export`."""
    started = time.perf_counter()
    with corpus.open("rb") as file, open(os.devnull, "wb") as nothing:
        run = subprocess.run(
            [sys.executable, "-m", "keras_transformer", "translate-export", str(export)], stdin=file, stdout=nothing
        )
    if run.returncode:
        raise BenchmarkError(f"translate-export ended with {run.returncode}.")
    return Measurement("`translate-export`, all cores", time.perf_counter() - started, 0)


def on_workers(export: pathlib.Path, corpus: pathlib.Path, folder: pathlib.Path, workers: int) -> Measurement:
    """Measure `cluster translate` on a new cluster."""
    home = folder / f"cluster{workers}"
    home.mkdir()
    with SparkCluster(home, workers) as cluster:
        command = ["cluster", "translate", export, "--from", corpus, "--to", folder / f"out{workers}"]
        options = ["--master", cluster.url, "--conf", "spark.executor.memory=1g", "--conf", "spark.ui.enabled=false"]
        started = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "keras_transformer", *map(str, [*command, *options])], env=os.environ | HERE
        )
        peak = Peak(home)
        code = process.wait()
        seconds, memory = time.perf_counter() - started, peak.ended()
    if code:
        raise BenchmarkError(f"cluster translate ended with {code} on {workers} workers.")
    return Measurement(f"`cluster translate`, {workers} x 1 core", seconds, memory)


class Peak:
    """The largest memory of a Python that runs in a folder of Spark's workers, looked at now and then."""

    def __init__(self, folder: pathlib.Path):
        self._folder, self._bytes, self._is_over = folder.resolve(), 0, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._is_over.wait(SECONDS_BETWEEN_LOOKS):
            for process in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    is_there = pathlib.Path(os.readlink(process / "cwd")).is_relative_to(self._folder)
                    if is_there and b"pyspark" in (process / "cmdline").read_bytes().partition(b"\0")[2]:
                        status = (process / "status").read_text()
                        self._bytes = max(self._bytes, int(status.partition("VmHWM:")[2].split()[0]) * 1024)
                except (OSError, IndexError):  # it has ended
                    continue

    def ended(self) -> int:
        """Stop looking. Returns bytes."""
        self._is_over.set()
        self._thread.join()
        return self._bytes


def as_markdown(measurements: list[Measurement], count: int) -> str:
    """Return the page."""
    first = measurements[0]
    rows = [
        f"| {each.name} | {each.seconds:.0f} | {count / each.seconds:,.0f} | {each.seconds / first.seconds:.2f} | "
        f"{f'{each.memory / 2**20:,.0f} MiB' if each.memory else ''} |"
        for each in measurements
    ]
    versions = package_versions(["pyspark", "tensorflow", "tensorflow-text"])
    return "\n".join(
        [
            HEAD,
            f"{count:,} lines on {processor_and_cores()}; "
            + ", ".join(f"{name} {version}" for name, version in versions.items())
            + ".\n",
            "| way | seconds | lines per second | times the first | memory of a worker's Python |",
            "|---|---|---|---|---|",
            *rows,
            "",
            f"`{command_line('speed.cluster')}`",
            "",
        ]
    )


def main() -> None:
    app(prog_name="python -m benchmarks.speed.cluster")


if __name__ == "__main__":
    main()
