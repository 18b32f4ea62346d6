"""Time from the start of a process to its first translation, and its largest memory."""

import os
import subprocess
import sys
import time

from benchmarks.errors import BenchmarkError
from benchmarks.speed.processes import peak_bytes
from benchmarks.speed.translate_work import Work
from benchmarks.speed.translators import CONTESTANTS

COUNTS = 1, 100  # lines of input


def first_translations(names: list[str], work: Work) -> dict[str, dict]:
    """Per contestant: seconds to the first line of output for each of COUNTS, and the peak memory of the last, bytes.

    Ours and the SavedModel are the commands that people use; a peer is a program of the same kind.
    """
    measurements = {}
    for name in names:
        if command := command_of(name, work):
            runs = {count: run(command, work.lines[:count]) for count in COUNTS}
            measurements[name] = {"seconds": {count: seconds for count, (seconds, _) in runs.items()}}
            measurements[name]["peak"] = runs[COUNTS[-1]][1]
    return measurements


def command_of(name: str, work: Work) -> list[str] | None:
    """The arguments of Python that translate standard input with a beam of 4."""
    module, precision = CONTESTANTS[name].module, CONTESTANTS[name].options.get("precision")
    if name.startswith("ours"):
        extra = ["--precision", precision] if precision else []
        return ["-m", "keras_transformer", "translate", str(work.folder / "run"), *extra]
    if name.startswith(("saved_model", "litert")):
        return ["-m", "export.translate", str(work.folder / f"{module.removesuffix('_model')}_{precision}_beam4")]
    options = CONTESTANTS[name].options.values()
    return ["-m", f"benchmarks.speed.translators.{module}", str(work.folder), *options, str(work.forced or 0)]


def run(command: list[str], lines: list[str]) -> tuple[float, int]:
    """Seconds to the first line of output, and the largest memory in bytes."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    process.stdin.write("".join(f"{line}\n" for line in lines).encode())
    process.stdin.close()
    first = process.stdout.readline()
    seconds = time.perf_counter() - started
    process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or not first.strip():
        raise BenchmarkError(f"{' '.join(command)} wrote no translation and ended with {process.returncode}.")
    return seconds, peak_bytes(usage)
