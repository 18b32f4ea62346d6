"""`python -m benchmarks.speed.serve EXPORT`: the local server under 1, 8 and 64 clients, and beyond its queue.

`--protocols rest,grpc` measures both, `--clients 1,8,64,256,1000` further numbers of clients.

An export that holds a LiteRT model (`keras-transformer export RUN --litert`) is measured without it too.
"""

import contextlib
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from benchmarks.errors import BenchmarkError, names_in
from benchmarks.result_files import RESULTS, command_line
from benchmarks.speed.serve_client import Expected, Load, ask_for, expected_answers, lines_per_second
from benchmarks.speed.serve_table import summary, write_results
from benchmarks.speed.translate_work import test_lines
from keras_transformer.commands.console import exit_codes
from keras_transformer.runs.versions import LITERT, find_version

PATIENCE = 300  # seconds for a server to start, on a busy machine
PROTOCOLS = {"rest": r"(http\S+):predict", "grpc": r"(grpc://\S+)\n"}  # and what the server prints of its URL
SMALL_QUEUE = 16  # lines that may wait, in the measurement beyond the queue
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def counts_in(clients: str) -> list[int]:
    """Return the numbers of clients in "1,4,16". Raises BenchmarkError for anything else."""
    if not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", clients):
        raise BenchmarkError(f"--clients is {clients!r}; give numbers with commas between them, such as 1,4,16.")
    return [int(count) for count in clients.split(",")]


@app.command()
def main(
    export: Annotated[
        pathlib.Path, typer.Argument(metavar="EXPORT", help="The folder that `keras-transformer export` wrote.")
    ],
    seconds: Annotated[float, typer.Option(min=0.1, help="How long each number of clients asks.")] = 60.0,
    clients: Annotated[str, typer.Option(help="Numbers of clients, separated by commas.")] = "1,8,64",
    protocols: Annotated[str, typer.Option(help="rest, grpc, or both, separated by a comma.")] = "rest",
    data: Annotated[pathlib.Path, typer.Option(help="The folder of Multi30k: test_2016 is asked.")] = pathlib.Path(
        "data/multi30k"
    ),
    lines: Annotated[pathlib.Path | None, typer.Option(help="Sentences to ask, in place of Multi30k.")] = None,
    results: Annotated[
        pathlib.Path, typer.Option(show_default="benchmarks/results", help="Folder for serve_load.md, .json and .png.")
    ] = RESULTS,
) -> None:
    """Ask for one sentence after the other from several clients at once, and check every answer."""
    with exit_codes():
        sentences = lines.read_text(encoding="utf-8").splitlines() if lines else test_lines(data, "en")
        if not sentences:
            raise BenchmarkError(f"{lines} has no sentence to ask.")
        counts, ways = counts_in(clients), names_in(protocols, PROTOCOLS, "protocol")
        numbers: dict[str, Any] = {"command": command_line("speed.serve"), "loads": [], "many": {}}
        numbers["load_before"] = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
        numbers["seconds"], numbers["sentences"], numbers["small_queue"] = seconds, len(sentences), SMALL_QUEUE
        with engines_of(export) as engines:
            for engine, folder in engines.items():
                with server(folder) as (urls, process):
                    note(f"{engine}: asking for {len(sentences)} sentences one by one, then for many in a request")
                    expected = expected_answers(urls["rest"], sentences)
                    numbers["many"][engine] = lines_per_second(urls["grpc"], expected, seconds)
                    for way, count in itertools.product(ways, counts):
                        note(f"{engine}, {way}: {count} clients for {seconds:g} seconds")
                        load = measured(urls[way], process, expected, count, seconds)
                        numbers["loads"].append({"engine": engine, "protocol": way, **load})
        with server(export, "--queue-rows", str(SMALL_QUEUE)) as (urls, process):
            note(f"{max(counts)} clients on a queue of {SMALL_QUEUE}")
            numbers["beyond"] = measured(urls["rest"], process, expected, max(counts), seconds)
        print(write_results(summary(numbers), results))


@contextlib.contextmanager
def engines_of(export: pathlib.Path) -> Iterator[dict[str, pathlib.Path]]:
    """The folder to serve by the name of what translates. Raises what `find_version` raises."""
    version = find_version(export.resolve())
    if not (version / LITERT).exists():
        yield {"graph": export}
        return
    with tempfile.TemporaryDirectory() as place:
        bare = pathlib.Path(place) / version.parent.name / version.name
        shutil.copytree(
            version, bare, ignore=shutil.ignore_patterns(pathlib.PurePath(LITERT).name), copy_function=os.symlink
        )
        yield {"graph": bare.parent, "graph and LiteRT": export}


@contextlib.contextmanager
def server(export: pathlib.Path, *arguments: str) -> Iterator[tuple[dict[str, str], subprocess.Popen]]:
    """Within, a server of an export runs in a process of its own. Yields its URLs by protocol and the process.

    Raises BenchmarkError if it does not start.
    """
    command = [sys.executable, "-m", "export.serve", str(export), "--port", "0", "--grpc-port", "0", *arguments]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield urls_in(log, process), process
        finally:
            process.terminate()
            process.wait()


def urls_in(log, process: subprocess.Popen) -> dict[str, str]:
    """Wait until the server has printed its URLs, and return them. Raises BenchmarkError if it does not start."""
    until = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < until:
        log.seek(0)
        text = log.read()
        found = {name: re.search(pattern, text) for name, pattern in PROTOCOLS.items()}
        if all(found.values()):
            return {name: match[1] for name, match in found.items() if match}
        time.sleep(0.1)
    log.seek(0)
    raise BenchmarkError(f"The server did not start: {' '.join(log.read().split())[-500:]}")


def measured(url: str, process: subprocess.Popen, expected: Expected, clients: int, seconds: float) -> dict[str, Any]:
    """Let clients ask for `seconds`, while the server's memory is looked at. Returns what they found."""
    memory, is_over = [], threading.Event()

    def watch() -> None:
        start = time.monotonic()
        while not is_over.is_set():
            memory.append((time.monotonic() - start, resident(process.pid)))
            is_over.wait(seconds / 60)

    watcher = threading.Thread(target=watch)
    watcher.start()
    before = processor_seconds(process.pid)
    load: Load = ask_for(url, expected, clients, seconds)
    is_over.set()
    watcher.join()
    return load._asdict() | {"memory": memory, "cpu": processor_seconds(process.pid) - before}


def resident(pid: int) -> int:
    """Return the bytes of memory that a process holds; 0 if the system has no /proc."""
    file = pathlib.Path(f"/proc/{pid}/statm")
    return int(file.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if file.exists() else 0


def processor_seconds(pid: int) -> float:
    """Return how long a process has used a processor; 0 if the system has no /proc."""
    file = pathlib.Path(f"/proc/{pid}/stat")
    if not file.exists():
        return 0.0
    fields = file.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    app(prog_name="python -m benchmarks.speed.serve")
