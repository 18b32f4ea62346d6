"""`python -m benchmarks.paper.long_dependencies`: how far each kind of encoder sees, on tasks with answers far away.

A run that was stopped goes on where it was: each trained model leaves a file in `--folder`.
"""

import json
import pathlib
import sys
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import typer

from benchmarks.errors import names_in
from benchmarks.paper.dependencies.encoders import KINDS, Effort, config_of, parameters_of, train_and_score
from benchmarks.paper.dependencies.report import draw, markdown
from benchmarks.paper.dependencies.tasks import VOCABULARY
from benchmarks.paper.table1 import require_jax
from benchmarks.result_files import RESULTS, command_line, write_result
from benchmarks.trials.sizes import check_same_size
from keras_transformer.commands.console import exit_codes
from keras_transformer.ground.machine import package_versions, processor_and_cores

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Extent(NamedTuple):
    """What is measured."""

    distances: tuple[int, ...]
    effort: Effort


FULL = Extent((8, 16, 32, 64, 128, 256, 512), Effort(steps=600, rows=16))
QUICK = Extent((8, 32), Effort(steps=120, rows=16))


@app.command()
def main(
    quick: Annotated[bool, typer.Option("--quick", help="Distances 8 and 32, 120 steps: less than 3 minutes.")] = False,
    only: Annotated[str, typer.Option(help="Kinds of encoder, separated by commas.")] = ",".join(KINDS),
    folder: Annotated[pathlib.Path, typer.Option(help="Where finished models are noted.")] = pathlib.Path(
        "runs/long_dependencies"
    ),
    results: Annotated[
        pathlib.Path | None,
        typer.Option(help="Folder for long_dependencies.md, .json and .png; benchmarks/results if all was measured."),
    ] = None,
) -> None:
    """Train an encoder of each kind on both tasks, one per distance, and print how many answers are right."""
    with exit_codes():
        kinds, extent = names_in(only, KINDS, "kind of encoder"), QUICK if quick else FULL
        require_jax()
        for task in VOCABULARY:
            check_same_size({kind: parameters_of(kind, task) for kind in kinds})
        numbers = {
            "command": command_line("paper.long_dependencies"),
            "machine": processor_and_cores(),
            "versions": ", ".join(" ".join(item) for item in package_versions(("jax", "keras", "numpy")).items()),
            "distances": extent.distances,
            "effort": extent.effort._asdict(),
            "cells": list(cells(kinds, extent, folder)),
        }
        is_whole = not quick and set(kinds) == set(KINDS)
        results = results or (RESULTS if is_whole else None)
        if results:
            write_result(results / "long_dependencies.json", json.dumps(numbers) + "\n")
            write_result(results / "long_dependencies.md", markdown(numbers))
            draw(numbers, results / "long_dependencies.png")
    print(markdown(numbers))


def cells(kinds: list[str], extent: Extent, folder: pathlib.Path) -> Iterator[dict[str, Any]]:
    """Yield what each model reached, shortest distances first; a model that is noted already is not trained again."""
    for distance in extent.distances:
        for task in VOCABULARY:
            for kind in kinds:
                setting = {"task": task, "kind": kind, "distance": distance, **extent.effort._asdict()}
                setting["base"] = config_of(kind, VOCABULARY[task]).to_json()
                path = folder / f"{task}_{kind}_{distance}_{extent.effort.steps}.json"
                cell = noted(path, setting)
                if cell is None:
                    cell = setting | train_and_score(kind, task, distance, extent.effort)
                    write_result(path, json.dumps(cell) + "\n")
                print(f"{task}, distance {distance}, {kind}: {cell['accuracy']:.1%}", file=sys.stderr, flush=True)
                yield cell


def noted(path: pathlib.Path, setting: dict[str, Any]) -> dict[str, Any] | None:
    """Return what is noted at `path`, or None if there is nothing, or it is of another setting."""
    try:
        cell = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return cell if setting.items() <= cell.items() else None


if __name__ == "__main__":
    app()
