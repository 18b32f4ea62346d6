"""`python -m benchmarks.speed.train`: training speed beside PyTorch, keras-hub and the machine's matrix product."""

import contextlib
import importlib.util
import os
import pathlib
from collections.abc import Iterable
from typing import Annotated

import typer

from benchmarks.errors import BenchmarkError, names_in
from benchmarks.result_files import RESULTS, command_line
from benchmarks.speed.contestants import PACKAGES, PREPARE, USUAL
from benchmarks.speed.contestants.workload import SIZES
from benchmarks.speed.train_table import Timings, as_markdown, summary, write_results
from benchmarks.speed.train_worker import Turn, Worker
from keras_transformer.commands.console import exit_codes

SECONDS, QUICK_SECONDS = 4.0, 2.5  # length of a contestant's turn in a round
SAME_LOSS = 1e-4  # relative difference that rounding in float32 explains

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    quick: Annotated[
        bool, typer.Option("--quick", help="Only the size tiny, whatever --sizes says: less than five minutes.")
    ] = False,
    rounds: Annotated[int, typer.Option(min=1, help="Turns per contestant; the median counts.")] = 5,
    sizes: Annotated[str, typer.Option(help="Separated by commas.")] = ",".join(SIZES),
    contestants: Annotated[str, typer.Option(help="Separated by commas.")] = ",".join(USUAL),
    results: Annotated[
        pathlib.Path | None,
        typer.Option(help="Folder for train_speed.md and .json; by default benchmarks/results, if everything was run."),
    ] = None,
) -> None:
    """Train the same model on the same batch in each contestant, in turns, and print how much faster ours is."""
    with exit_codes():
        size_names = ["tiny"] if quick else names_in(sizes, SIZES, "size")
        contestant_names = names_in(contestants, PREPARE, "contestant")
        check_packages(contestant_names)
        is_whole = set(size_names) == set(SIZES) and set(contestant_names) >= set(USUAL)
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
        timings = {}
        for size in size_names:
            with contextlib.ExitStack() as stack:
                workers = [stack.enter_context(Worker(name, SIZES[size])) for name in contestant_names]
                timings[size] = measure(workers, rounds, QUICK_SECONDS if quick else SECONDS)
        numbers = summary(timings, SIZES, rounds, command_line("speed.train"), load)
    print(as_markdown(numbers))
    if results or is_whole:
        write_results(numbers, results or RESULTS)


def check_packages(contestants: Iterable[str]) -> None:
    """Raises BenchmarkError if a contestant needs a package that is not installed."""
    for name in contestants:
        if name in PACKAGES and importlib.util.find_spec(PACKAGES[name]) is None:
            raise BenchmarkError(f"{name} needs {PACKAGES[name]}, which is not installed: run `make peers`.")


def measure(workers: list[Worker], rounds: int, seconds: float) -> Timings:
    """Run every lane in turn for about `seconds`, and repeat that `rounds` times.

    So a disturbance of the machine that outlasts a turn affects every contestant. Raises BenchmarkError if two
    contestants find different losses for the same batch and weights: then they do not do the same work.
    """
    described = {worker: worker.describe() for worker in workers}
    loss = {worker.name: description.loss for worker, description in described.items() if description.loss is not None}
    check_same_loss(loss)
    lanes = [(worker, lane) for worker, description in described.items() for lane in description.work]
    steps = {lane: steps_for(worker, lane, seconds) for worker, lane in lanes}
    turns = {lane: [] for lane in steps}
    for _ in range(rounds):
        for worker, lane in lanes:
            turns[lane].append(worker.run(lane, steps[lane]))
    return Timings(
        work={lane: work for description in described.values() for lane, work in description.work.items()},
        seconds={lane: [turn.seconds / steps[lane] for turn in turns[lane]] for lane in turns},
        parameters={
            worker.name: description.parameters for worker, description in described.items() if description.parameters
        },
        loss=loss,
        idle_share={
            worker.name: idle_share([turn for lane in description.work for turn in turns[lane]])
            for worker, description in described.items()
        },
    )


def idle_share(turns: list[Turn]) -> float:
    """Share of a core that was used in the waits before these turns."""
    return sum(turn.used for turn in turns) / sum(turn.waited for turn in turns)


def check_same_loss(loss: dict[str, float]) -> None:
    """Raises BenchmarkError if the losses, by contestant, differ by more than rounding explains."""
    if loss and max(loss.values()) > min(loss.values()) * (1 + SAME_LOSS):
        raise BenchmarkError(f"The contestants find different losses for the same batch and weights: {loss}.")


def steps_for(worker: Worker, lane: str, seconds: float) -> int:
    """The number of steps of a lane that take about `seconds`; at least 2."""
    steps = 1
    while (taken := worker.run(lane, steps).seconds) < seconds / 4:
        steps *= 2
    return max(2, round(steps * seconds / taken))


if __name__ == "__main__":
    app()
