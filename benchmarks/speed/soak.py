"""`python -m benchmarks.speed.soak EXPORT`: the local server for long, under all that goes wrong."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from typing import Annotated, Any

import typer

from benchmarks.errors import BenchmarkError
from benchmarks.result_files import RESULTS, command_line
from benchmarks.speed.serve import PATIENCE, note, resident, server
from benchmarks.speed.soak_clients import Found, Place, behaviours, states_of
from benchmarks.speed.soak_questions import known_answers
from benchmarks.speed.soak_table import faults, summary, write_results
from benchmarks.speed.translate_work import test_lines
from keras_transformer.commands.console import exit_codes
from keras_transformer.runs.versions import find_version

MEMORY_SECONDS = 2.0  # between two looks at the server's memory
KEPT = 3  # versions that stay in the folder
BAD = 3  # every so many reloads, the new version is damaged
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    export: Annotated[
        pathlib.Path, typer.Argument(metavar="EXPORT", help="The folder that `keras-transformer export` wrote.")
    ],
    minutes: Annotated[float, typer.Option(min=0.05, help="How long the clients ask.")] = 30.0,
    clients: Annotated[int, typer.Option(min=4, help="Clients at the same time.")] = 32,
    reload_seconds: Annotated[float, typer.Option(min=1.0, help="Seconds between two new versions.")] = 60.0,
    data: Annotated[pathlib.Path, typer.Option(help="The folder of Multi30k: test_2016 is asked.")] = pathlib.Path(
        "data/multi30k"
    ),
    lines: Annotated[pathlib.Path | None, typer.Option(help="Sentences to ask, in place of Multi30k.")] = None,
    results: Annotated[
        pathlib.Path, typer.Option(show_default="benchmarks/results", help="Folder for soak.md, .json and .png.")
    ] = RESULTS,
) -> None:
    """Let clients of every kind ask while versions come and go. Exits with 1 if anything was wrong."""
    with exit_codes():
        sentences = lines.read_text(encoding="utf-8").splitlines() if lines else test_lines(data, "en")
        sentences = [sentence for sentence in sentences if sentence.strip()][:200]
        if not sentences:
            raise BenchmarkError(f"{lines} has no sentence to ask.")
        with tempfile.TemporaryDirectory(dir=export.parent) as place:  # beside the export, so that files can be linked
            numbers = soaked(
                find_version(export), pathlib.Path(place) / "soak", sentences, minutes, clients, reload_seconds
            )
        numbers["command"] = command_line("speed.soak")
        print(write_results(summary(numbers), results))
        if wrong := faults(numbers):
            raise BenchmarkError(f"Something was wrong: {'; '.join(wrong)}.")


def soaked(
    version: pathlib.Path,
    folder: pathlib.Path,
    sentences: list[str],
    minutes: float,
    clients: int,
    reload_seconds: float,
) -> dict[str, Any]:
    """Serve links of a version from `folder`, let clients ask, and return what they found."""
    add_version(version, folder, 1)
    with socket.create_server(("127.0.0.1", 0)) as free:
        grpc_port = free.getsockname()[1]
    with server(folder, "--grpc-port", str(grpc_port)) as (url, process):
        place = Place(url, f"grpc://127.0.0.1:{grpc_port}/{folder.name}")
        note(f"asking for the answers to {len(sentences)} sentences on the idle server")
        questions = known_answers(url, sentences)
        note(f"{clients} clients for {minutes:g} minutes: {', '.join(sorted({each.kind for each in questions}))}")
        found, is_over, start = Found(), threading.Event(), time.monotonic()
        memory: list[tuple[float, int]] = []
        versions: list[dict[str, Any]] = []
        behaviour = behaviours(clients)
        threads = [
            threading.Thread(target=behave, args=[place, questions, number, is_over, start, found])
            for number, behave in enumerate(behaviour)
        ]
        threads.append(threading.Thread(target=watch_memory, args=[process, is_over, start, memory]))
        threads.append(
            threading.Thread(target=replace, args=[version, folder, reload_seconds, is_over, start, versions])
        )
        for thread in threads:
            thread.start()
        end = start + 60 * minutes
        while time.monotonic() < end and process.poll() is None:
            time.sleep(0.2)
        is_over.set()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - start
        newest = max([each["number"] for each in versions if not each["is_bad"]], default=1)
        served = served_at_last(url, newest)
        code = ended(process)
    return {
        "minutes": minutes,
        "clients": clients,
        "reload_seconds": reload_seconds,
        "seconds": seconds,
        "sentences": len(sentences),
        "behaviours": sorted(each.__name__ for each in behaviour),
        "memory": memory,
        "versions": versions,
        "newest": newest,
        "served": served,
        "code": code,
        **found.as_dictionary(),
    }


def add_version(version: pathlib.Path, folder: pathlib.Path, number: int, is_bad: bool = False) -> None:
    """Add a version that has the files of `version` as links, in one step; a bad one has half of its graph."""
    staged = folder / f".{number}"
    shutil.copytree(version, staged, copy_function=linked)
    if is_bad:
        graph = (staged / "saved_model.pb").read_bytes()
        (staged / "saved_model.pb").unlink()
        (staged / "saved_model.pb").write_bytes(graph[: len(graph) // 2])
    staged.rename(folder / str(number))


def linked(source: str, target: str) -> str:
    """Link a file to another name; copy it if the file system has no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target


def replace(
    version: pathlib.Path,
    folder: pathlib.Path,
    seconds: float,
    is_over: threading.Event,
    start: float,
    versions: list[dict[str, Any]],
) -> None:
    """Add a version every so many seconds, every BAD-th damaged, and remove the oldest but KEPT."""
    number = 1
    while not is_over.wait(seconds):
        number += 1
        is_bad = number % BAD == 0
        add_version(version, folder, number, is_bad)
        versions.append({"number": number, "is_bad": is_bad, "at": time.monotonic() - start})
        for old in range(1, number - KEPT):
            shutil.rmtree(folder / str(old), ignore_errors=True)


def watch_memory(
    process: subprocess.Popen, is_over: threading.Event, start: float, memory: list[tuple[float, int]]
) -> None:
    while True:
        memory.append((time.monotonic() - start, resident(process.pid)))
        if is_over.wait(MEMORY_SECONDS):
            return


def served_at_last(url: str, newest: int) -> list[int]:
    """Return the versions that are served as soon as the newest is, or after PATIENCE seconds."""
    until = time.monotonic() + PATIENCE
    while True:
        served = [number for number, state in states_of(url).items() if state == "AVAILABLE"]
        if served == [newest] or time.monotonic() > until:
            return served
        time.sleep(0.5)


def ended(process: subprocess.Popen) -> int:
    """End a server as an operator does. Returns its exit code."""
    process.send_signal(signal.SIGTERM)
    try:
        return process.wait(60)
    except subprocess.TimeoutExpired:
        return -1


if __name__ == "__main__":
    app(prog_name="python -m benchmarks.speed.soak")
