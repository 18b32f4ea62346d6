"""`python -m benchmarks.paper.table1`: Table 1 of the paper, with every entry counted or measured.

It needs Keras on JAX (requirements-peers.txt): what is timed is the very graph in which operations are counted.
"""

import importlib.util
import json
import os
import pathlib
import sys
from typing import Annotated, Any, NamedTuple

import typer

from benchmarks.errors import BenchmarkError
from benchmarks.result_files import RESULTS, command_line, write_result
from keras_transformer.commands.console import exit_codes
from keras_transformer.ground.machine import package_versions, processor_and_cores

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Extent(NamedTuple):
    """What is measured."""

    lengths: tuple[int, ...]  # n
    widths: tuple[int, ...]  # d


FULL = Extent(tuple(2**power for power in range(4, 12)), (64, 512))
QUICK = Extent((16, 32, 64, 128), (64,))


@app.command()
def main(
    quick: Annotated[bool, typer.Option("--quick", help="Only n up to 128 and d 64: less than a minute.")] = False,
    rounds: Annotated[int, typer.Option(min=1, help="Turns per layer; the median counts.")] = 7,
    cap: Annotated[float, typer.Option(min=0.1, help="Seconds; what takes longer is timed once.")] = 10.0,
    results: Annotated[
        pathlib.Path | None,
        typer.Option(help="Folder for table1.md, .json and .png; benchmarks/results if everything was measured."),
    ] = None,
) -> None:
    """Count and time each kind of layer, measure how far signals travel, and print the table beside the paper's."""
    with exit_codes():
        require_jax()
        from benchmarks.paper.layer_kinds.picture import draw
        from benchmarks.paper.layer_kinds.report import markdown

        numbers = measure_all(QUICK if quick else FULL, rounds, cap)
        folder = results or (None if quick else RESULTS)
        if folder:
            write_result(folder / "table1.json", json.dumps(numbers) + "\n")
            write_result(folder / "table1.md", markdown(numbers))
            draw(numbers, folder / "table1.png")
    print(markdown(numbers))


def require_jax() -> None:
    """Let Keras run on JAX. Raises BenchmarkError if JAX is not installed."""
    if importlib.util.find_spec("jax") is None:
        raise BenchmarkError(
            "JAX, on which Table 1 is measured, is not installed: pip install -r requirements-peers.txt"
        )
    os.environ["KERAS_BACKEND"] = "jax"


def measure_all(extent: Extent, rounds: int, cap: float) -> dict[str, Any]:
    """Return what table1.json holds."""
    from benchmarks.paper.layer_kinds.claims import MEASURED, STACKED
    from benchmarks.paper.layer_kinds.kinds import HEAD, Sizes
    from benchmarks.paper.layer_kinds.path import layers_needed, steps_inside
    from benchmarks.paper.layer_kinds.timing import BATCH, Effort, measure

    sizes, load = Sizes(), os.getloadavg()[0]
    cells, paths = [], []
    for d in extent.widths:
        for n in extent.lengths:
            print(f"d {d}, n {n:,}", file=sys.stderr, flush=True)
            cells += measure(MEASURED, n, d, sizes, Effort(rounds, cap))
    for kind in STACKED:
        for n in extent.lengths:
            print(f"path of {kind}, n {n:,}", file=sys.stderr, flush=True)
            layers, steps = layers_needed(kind, n, sizes), steps_inside(kind, n, sizes)
            paths.append({"kind": kind, "n": n, "layers": layers, "steps": steps, "length": layers * steps})
    return {
        "command": command_line("paper.table1"),
        "machine": processor_and_cores(),
        "versions": ", ".join(" ".join(item) for item in package_versions(("jax", "keras", "numpy", "scipy")).items()),
        "load_before": load,
        "load_after": os.getloadavg()[0],
        "sizes": sizes._asdict(),
        "batch": BATCH,
        "head": HEAD,
        "effort": {"rounds": rounds, "cap": cap},
        "lengths": extent.lengths,
        "widths": extent.widths,
        "cells": [cell._asdict() for cell in cells],
        "paths": paths,
    }


if __name__ == "__main__":
    app()
