"""`python -m benchmarks.accelerator`: training speed with Keras' JAX backend, beside torch.compile.

It needs jax, keras, numpy and typer, and torch for the second contestant; it does not need TensorFlow.
"""

import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import Annotated, Any

import typer

from benchmarks.on_accelerator.pairs import batch_flops, packed_batches, target_tokens
from benchmarks.on_accelerator.report import Absence, Measurement, chip_line, notes, page, table
from benchmarks.on_accelerator.training import Task
from benchmarks.result_files import command_line, write_result
from keras_transformer.commands.console import exit_codes
from keras_transformer.config import ConfigError, preset
from keras_transformer.errors import UserError

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONTESTANTS = {"keras": "keras_transformer, JAX", "torch": "torch.nn.Transformer, torch.compile"}
PAPER_TOKENS = 25_088  # 98 rows of 256: the paper's 25,000 source and 25,000 target tokens (section 5.1)
CPU_TOKENS = 1_024
STEPS, CPU_STEPS = 20, 5

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class ContestantFailed(UserError):
    """A contestant's process that had to stop; the message is the reason."""


class Contestant:
    """The parent's end of benchmarks/on_accelerator/contestant.py. Leaving it as a context ends the process."""

    def __init__(self, name: str, task: Task | None = None):
        command = [sys.executable, "-m", "benchmarks.on_accelerator.contestant", name]
        command += [] if task is None else [json.dumps(vars(task))]
        # PREALLOCATE: otherwise the first contestant takes all memory of a GPU that both use
        settings = {"KERAS_BACKEND": "jax", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        self.log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, cwd=ROOT,
            env=os.environ | settings,
        )  # fmt: skip

    def __enter__(self) -> "Contestant":
        return self

    def __exit__(self, *_) -> None:
        self.process.kill()
        self.process.communicate()
        self.log.close()

    def answer(self) -> dict[str, Any]:
        """The next answer. Raises ContestantFailed if the process has ended or reports a failure."""
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.log.seek(0)
            last = self.log.read().strip().splitlines() or ["without a message"]
            raise ContestantFailed(f"its process ended with code {self.process.returncode}: {last[-1]}")
        answer = json.loads(line)
        if "failed" in answer:
            raise ContestantFailed(answer["failed"])
        return answer

    def round(self, steps: int) -> dict[str, Any]:
        """Train for that number of steps; returns the fields of a Round."""
        try:
            print(steps, file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass  # the process has ended: answer() raises the reason
        return self.answer()


@app.command()
def main(
    sizes: Annotated[
        str, typer.Option(help="Presets, separated by commas. Default: base,big on an accelerator, tiny on a CPU.")
    ] = "",
    steps: Annotated[int, typer.Option(min=0, help="Steps per round; 0 means 20, or 5 on a CPU.")] = 0,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds per contestant, in turn; the median counts.")] = 3,
    tokens: Annotated[
        int,
        typer.Option(
            min=0, help="Source positions per step, and as many target positions; 0 means 25,088, or 1,024 on a CPU."
        ),
    ] = 0,
    row_length: Annotated[int, typer.Option(min=32, help="Positions of a packed row.")] = 256,
    attention: Annotated[
        str, typer.Option(help="fused: the backend's kernel if it has one; explicit: the formula.")
    ] = "fused",
    warmup_steps: Annotated[int, typer.Option(min=1, help="Warm-up steps of the learning rate.")] = 4000,
    results: Annotated[pathlib.Path | None, typer.Option(help="A file to write the page to.")] = None,
) -> None:
    """Measure how fast the paper's models train on this machine's accelerator, or on its CPU."""
    with exit_codes():
        if attention not in ("fused", "explicit"):
            raise ConfigError(f"--attention is {attention!r}; it must be fused or explicit.")
        with Contestant("chip") as chip:
            chip = chip.answer()
        typer.echo(chip_line(chip))
        is_cpu = chip["platform"] == "cpu"
        tokens = tokens or (CPU_TOKENS if is_cpu else PAPER_TOKENS)
        steps = steps or (CPU_STEPS if is_cpu else STEPS)
        if tokens < row_length:
            raise ConfigError(f"--tokens is {tokens}; it must be at least --row-length, {row_length}.")
        names = [name.strip() for name in (sizes or ("tiny" if is_cpu else "base,big")).split(",")]
        for name in names:
            preset(name)  # raises ConfigError for an unknown name, before anything is measured
        tasks = [Task(name, tokens, row_length, attention, warmup_steps) for name in names]
        found = [result for task in tasks for result in compare(task, steps, rounds)]
    typer.echo("\n".join([table(found, chip["matrix_flops"]), *notes(found)]))
    if results is not None:
        shape = (
            f"One step: {tokens // row_length} rows of {row_length} source and {row_length} target positions, bfloat16 "
            f"with float32 weights. {rounds} rounds of {steps} steps."
        )
        command = command_line("accelerator")
        write_result(results, page(chip, found, command, shape))


def compare(task: Task, steps: int, rounds: int) -> list[Measurement | Absence]:
    """Measure all contestants with one model, their rounds in turn."""
    batches = packed_batches(task.config.vocab_size, task.tokens, task.row_length)
    tokens = statistics.mean(map(target_tokens, batches))
    flops = statistics.mean(batch_flops(task.config, batch) for batch in batches)
    ready, measured, absences = {}, {}, {}
    with contextlib.ExitStack() as stack:
        running = {}
        for name in CONTESTANTS:
            contestant = stack.enter_context(Contestant(name, task))
            try:
                ready[name] = contestant.answer()
                running[name], measured[name] = contestant, []
            except ContestantFailed as failure:
                absences[name] = str(failure)
        for _ in range(rounds):
            for name in list(running):
                try:
                    measured[name].append(running[name].round(steps))
                except ContestantFailed as failure:
                    absences[name] = str(failure)
                    del running[name]
    return [
        Absence(task.size, label, absences[name])
        if name in absences
        else Measurement(task.size, label, ready[name]["seconds"], tokens, flops, measured[name], ready[name]["notes"])
        for name, label in CONTESTANTS.items()
    ]


if __name__ == "__main__":
    app()
