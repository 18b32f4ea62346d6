"""`python -m benchmarks.speed.large_import FOLDER`: what a model of another system costs from its folder to an export.

Imports the folder, exports the run to LiteRT, or with `--format saved_model` to that, and opens the export, each in a
process of its own. Prints a table of seconds by the clock and of the processor, and of the largest memory, also as a
multiple of the bytes of the weights.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Annotated, NamedTuple

import typer

from benchmarks.speed.processes import peak_bytes
from keras_transformer.ground.machine import processor_and_cores

WEIGHTS = ("model.safetensors", "pytorch_model.bin", "*.npz")  # the files of weights in a folder
FORMATS = {  # options of the export, and a program that opens what it wrote
    "litert": (
        ["--quantization", "int8"],
        "import sys; from keras_transformer.lite.translator import LiteTranslator as T; t = T(sys.argv[1], threads=1)",
    ),
    "saved_model": (
        ["--signature", "serving_default"],
        "import sys; from keras_transformer.translation.exported import ExportedTranslator as T; t = T(sys.argv[1])",
    ),
}
HEAD = "| step | seconds | of the processor | memory, GB | over weights | file, GB |\n|---|---:|---:|---:|---:|---:|"


class Cost(NamedTuple):
    """What a process took: seconds by the clock and of processors, bytes of its largest memory, and its exit status."""

    seconds: float
    processor_seconds: float
    memory: int
    status: int


def main(
    folder: Annotated[pathlib.Path, typer.Argument(help="A folder that `keras-transformer import` takes.")],
    source: Annotated[str, typer.Option(help="The language that is read, if the model has several.")] = "",
    target: Annotated[str, typer.Option(help="The language that is written, if the model has several.")] = "",
    longest: Annotated[int, typer.Option(min=1, help="Tokens of a source that the export takes.")] = 16,
    place: Annotated[pathlib.Path | None, typer.Option(help="A folder for the run and the exports.")] = None,
    format: Annotated[list[str] | None, typer.Option(help=f"{', '.join(FORMATS)}; may be repeated.")] = None,
) -> None:
    weights = bytes_of(folder)
    print(f"{processor_and_cores()}; weights of {weights / 1e9:.2f} GB\n\n{HEAD}", flush=True)
    with tempfile.TemporaryDirectory(dir=place) as name:
        run = pathlib.Path(name) / "run"
        languages = [f"--{side}-language={code}" for side, code in (("source", source), ("target", target)) if code]
        limits = ["--max-source-tokens", str(longest), *languages]
        steps = {"import": (["-m", "keras_transformer", "import", folder, run], run / "model.weights.h5")}
        for kind in format or ["litert"]:
            (options, program), exported = FORMATS[kind], pathlib.Path(name) / kind
            export = ["-m", "export", run, "--to", exported, "--format", kind, "--no-check", *options, *limits]
            steps |= {
                f"export to {kind}": (export, exported),
                f"open {kind}": (["-c", program, exported], None),
                f"open {kind}, and one sentence": (["-c", f"{program}; t.translate(['A dog runs.'])", exported], None),
            }
        for step, (arguments, file) in steps.items():
            cost = cost_of(arguments)
            files = [each for each in (file, *file.rglob("*")) if each.is_file()] if file else []
            size = f"{sum(each.stat().st_size for each in files) / 1e9:.2f}" if files else ""
            print(row(step, cost, weights, size), flush=True)
            if cost.status:
                raise typer.Exit(1)


def bytes_of(folder: pathlib.Path) -> int:
    """Return the bytes of the file of weights in a folder: the first of WEIGHTS that is there."""
    return next(sum(sizes) for pattern in WEIGHTS if (sizes := [file.stat().st_size for file in folder.glob(pattern)]))


def cost_of(arguments: list) -> Cost:
    """Run Python with these arguments until it ends."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, *map(str, arguments)], stdout=sys.stderr)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)  # which nobody else can ask for now
    used = usage.ru_utime + usage.ru_stime
    return Cost(time.perf_counter() - began, used, peak_bytes(usage), process.returncode)


def row(step: str, cost: Cost, weights: int, size: str) -> str:
    """Return a row of the table."""
    if cost.status:
        size = f"failed: {cost.status}"
    memory = f"{cost.memory / 1e9:.2f} | {cost.memory / weights:.2f}"
    return f"| {step} | {cost.seconds:.1f} | {cost.processor_seconds:.1f} | {memory} | {size} |"


if __name__ == "__main__":
    typer.run(main)
