"""`python -m benchmarks.speed.accelerator --to FOLDER`: how fast stock `fit` trains on JAX, beside torch.compile.

It needs jax and keras, torch for its contestants, pydantic, tomli_w and typer; it does not need TensorFlow.
"""

import dataclasses
import itertools
import pathlib
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import typer

from benchmarks.errors import BenchmarkError, names_in
from benchmarks.result_files import command_line, write_result
from benchmarks.speed.on_accelerator.chip import Chip
from benchmarks.speed.on_accelerator.packed_text import batch_flops, packed_batches, target_tokens
from benchmarks.speed.on_accelerator.process import Measuring, Training
from benchmarks.speed.on_accelerator.report import Measurement, as_json, chip_lines, page, table
from benchmarks.speed.on_accelerator.task import CONTESTANTS, USUAL, Task
from benchmarks.speed.on_accelerator.turns import answers_in_turns, seconds_until
from benchmarks.speed.processes import ContestantProcess
from keras_transformer.commands.console import exit_codes
from keras_transformer.config import preset

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    to: Annotated[pathlib.Path, typer.Option(help="A folder for accelerator.md and accelerator.json.")],
    sizes: Annotated[str, typer.Option(help="Presets, separated by commas: tiny, base, big.")] = "base",
    contestants: Annotated[str, typer.Option(help=f"Separated by commas, of {', '.join(CONTESTANTS)}.")] = ",".join(
        USUAL
    ),
    steps: Annotated[int, typer.Option(min=1, help="Steps per round.")] = 30,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds per contestant, in turn; the median counts.")] = 5,
    rows: Annotated[int, typer.Option(min=1, help="Packed rows per batch.")] = 196,
    row_length: Annotated[int, typer.Option(min=32, help="Source positions, and target positions, of a row.")] = 128,
    minutes: Annotated[float, typer.Option(min=0.1, help="Whoever has not answered by then is not waited for.")] = 8,
) -> None:
    """Measure how fast the paper's models train on this machine's accelerator, or on its CPU."""
    deadline = time.monotonic() + 60 * minutes
    with exit_codes():
        names = names_in(contestants, CONTESTANTS, "contestant")
        configs = {size: preset(size) for size in sizes.split(",")}
        chip = measured_chip(deadline)
        typer.echo(chip_lines(chip))
        shape = (
            f"One step: {rows} rows of {row_length} source and {row_length} target positions, dropout and Adam "
            f"included. {rounds} rounds of {steps} steps."
        )
        measurements: list[Measurement] = []
        for size, config in configs.items():
            task = Task(config, packed_batches(config.vocab_size, rows * row_length, row_length))
            for group in by_precision(names):
                measurements += compare(size, task, group, (steps,) * rounds, deadline)
                report = (chip, measurements, command_line("speed.accelerator"), shape)
                write_result(to / "accelerator.md", page(*report))  # after each group, since the machine may be lent
                write_result(to / "accelerator.json", as_json(*report))
        typer.echo(table(measurements, chip))
    if not any(measurement.rounds for measurement in measurements):
        raise typer.Exit(1)


def measured_chip(deadline: float) -> Chip:
    """The device, measured in a process that has it for itself. Raises BenchmarkError if that fails."""
    with ContestantProcess(Measuring, "the measurement of the device") as process:
        process.wait_until_ready(seconds_until(deadline))
        return process.ask("chip", patience=seconds_until(deadline))


def by_precision(names: Iterable[str]) -> Iterator[list[str]]:
    """Yield the contestants of one precision, in order: their processes exist at the same time."""
    for _, group in itertools.groupby(names, lambda name: CONTESTANTS[name].precision):
        yield list(group)


def compare(size: str, task: Task, names: list[str], steps: Sequence[int], deadline: float) -> list[Measurement]:
    """Measure these contestants, their rounds in turn; each number of `steps` is a round of each."""
    results = {name: blank_measurement(size, task, name) for name in names}

    def record(name: str, event: str, **values) -> None:
        results[name] = dataclasses.replace(results[name], **values)
        typer.echo(f"{size}: {event}")

    for name, count, answer in answers_in_turns(
        lambda name: ContestantProcess(Training, name, task), names, steps, deadline
    ):
        if isinstance(answer, BenchmarkError):
            record(name, str(answer), failure=str(answer))
        elif count is None:
            record(name, f"{name} is ready after {answer:.0f} s", ready_seconds=answer)
        else:
            rounds = (*results[name].rounds, answer)
            milliseconds = 1000 * answer.seconds / count
            record(name, f"{name}, round {len(rounds)}: {milliseconds:.1f} ms per step", rounds=rounds)
    return list(results.values())


def blank_measurement(size: str, task: Task, name: str) -> Measurement:
    tokens = statistics.mean(map(target_tokens, task.batches))
    flops = statistics.mean(batch_flops(task.config, batch) for batch in task.batches)
    return Measurement(size, name, tokens, flops)


if __name__ == "__main__":
    app()
