"""`python -m benchmarks.train_speed`: training speed beside PyTorch, keras-hub and the machine's matrix product."""

import contextlib
import importlib.util
import os
import pathlib
import sys
from typing import Annotated, NamedTuple

import typer

from benchmarks.contestants import PACKAGES, PREPARE, USUAL
from benchmarks.contestants.workload import SIZES
from benchmarks.speed_table import as_markdown, summary, write_results
from benchmarks.worker import BenchmarkError, Worker
from keras_transformer.console import exit_codes

RESULTS = pathlib.Path(__file__).parent / "results"
SECONDS, QUICK_SECONDS = 4.0, 2.5  # of a contestant's turn in a round
SAME_LOSS = 1e-4  # relative: what float32 may make of the same sum

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Timings(NamedTuple):
    """One size, measured. `seconds`: of a step, one number a round, by lane."""

    work: dict[str, float]  # of a step, by lane: target tokens, or FLOPs
    seconds: dict[str, list[float]]
    parameters: dict[str, int]
    loss: dict[str, float]
    idle_share: dict[str, float]  # of a core, used by a contestant while it waited


@app.command()
def main(
    quick: Annotated[bool, typer.Option("--quick", help="The size tiny alone, in less than five minutes.")] = False,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each contestant; the median counts.")] = 5,
    sizes: Annotated[str, typer.Option(help="Which, separated by commas.")] = ",".join(SIZES),
    contestants: Annotated[str, typer.Option(help="Which, separated by commas.")] = ",".join(USUAL),
    results: Annotated[
        pathlib.Path | None,
        typer.Option(help="Folder for train_speed.md and .json; benchmarks/results after a run of everything."),
    ] = None,
):
    """Train the same model on the same batch in each contestant, in turns, and print how much faster ours is."""
    with exit_codes():
        sizes = ["tiny"] if quick else chosen(sizes, SIZES, "size")
        contestants = chosen(contestants, PREPARE, "contestant")
        check_packages(contestants)
        is_whole = set(sizes) == set(SIZES) and set(contestants) >= set(USUAL)
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
        timings = {}
        for size in sizes:
            with workers_for(contestants, SIZES[size]) as workers:
                timings[size] = measure(workers, rounds, QUICK_SECONDS if quick else SECONDS)
        found = summary(timings, SIZES, rounds, "python -m benchmarks.train_speed " + " ".join(sys.argv[1:]), load)
    print(as_markdown(found))
    if results or is_whole:
        write_results(found, results or RESULTS)


def chosen(text, known, kind):
    names = text.split(",")
    if unknown := [name for name in names if name not in known]:
        raise BenchmarkError(f"There is no {kind} {unknown[0]!r}; there are {', '.join(known)}.")
    return names


def check_packages(contestants):
    for name in contestants:
        if name in PACKAGES and importlib.util.find_spec(PACKAGES[name]) is None:
            raise BenchmarkError(f"{name} needs {PACKAGES[name]}, which is not installed: run `make peers`.")


@contextlib.contextmanager
def workers_for(contestants, workload):
    """Workers that have started to get ready; none is left at the end, whatever happens."""
    workers = []
    try:
        for name in contestants:
            workers.append(Worker(name, workload))
        yield workers
        for worker in workers:
            worker.dismiss()
    finally:
        for worker in workers:
            worker.kill()


def measure(workers, rounds, seconds):
    """The Timings of a size: every lane in turn for about so many seconds, and again, round after round.

    What disturbs the machine for longer than a turn so disturbs everybody. Raises BenchmarkError if two contestants
    find different losses for the same batch and weights: they would not be doing the same work.
    """
    described = {worker: worker.describe() for worker in workers}
    loss = {worker.name: said.loss for worker, said in described.items() if said.loss is not None}
    check_same_loss(loss)
    lanes = [(worker, lane) for worker, said in described.items() for lane in said.work]
    steps = {lane: steps_for(worker, lane, seconds) for worker, lane in lanes}
    turns = {lane: [] for lane in steps}
    for _ in range(rounds):
        for worker, lane in lanes:
            turns[lane].append(worker.run(lane, steps[lane]))
    return Timings(
        work={lane: work for said in described.values() for lane, work in said.work.items()},
        seconds={lane: [turn.seconds / steps[lane] for turn in turns[lane]] for lane in turns},
        parameters={worker.name: said.parameters for worker, said in described.items() if said.parameters},
        loss=loss,
        idle_share={
            worker.name: idle_share([turn for lane in said.work for turn in turns[lane]])
            for worker, said in described.items()
        },
    )


def idle_share(turns):
    return sum(turn.used for turn in turns) / sum(turn.waited for turn in turns)


def check_same_loss(loss):
    if loss and max(loss.values()) > min(loss.values()) * (1 + SAME_LOSS):
        raise BenchmarkError(f"The contestants find different losses for the same batch and weights: {loss}.")


def steps_for(worker, lane, seconds):
    """How many steps of a lane take about so many seconds; at least 2."""
    steps = 1
    while (taken := worker.run(lane, steps).seconds) < seconds / 4:
        steps *= 2
    return max(2, round(steps * seconds / taken))


if __name__ == "__main__":
    app()
