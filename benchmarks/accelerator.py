"""`python -m benchmarks.accelerator`: training speed under Keras' JAX backend, and beside it torch.compile.

Needs jax, keras, numpy and typer, no TensorFlow; torch for the second contestant.
"""

import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import Annotated

import typer

from benchmarks.on_accelerator.pairs import batch_flops, packed_batches, target_tokens
from benchmarks.on_accelerator.report import Absence, Measurement, chip_line, notes, page, table
from benchmarks.on_accelerator.training import Task
from keras_transformer.config import ConfigError, preset
from keras_transformer.console import exit_codes
from keras_transformer.errors import UserError

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONTESTANTS = {"keras": "keras_transformer, JAX", "torch": "torch.nn.Transformer, torch.compile"}
PAPER_TOKENS = 25_088  # 98 rows of 256: the paper's 25,000 source and 25,000 target tokens (section 5.1)
CPU_TOKENS = 1_024
STEPS, CPU_STEPS = 20, 5

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class ContestantFailed(UserError):
    """A contestant's process that could not go on; the message says why."""


class Contestant:
    """The parent's end of benchmarks/on_accelerator/contestant.py. A context: leaving it ends the process."""

    def __init__(self, name, task=None):
        command = [sys.executable, "-m", "benchmarks.on_accelerator.contestant", name]
        command += [] if task is None else [json.dumps(vars(task))]
        # KERAS_BACKEND: no TensorFlow. PREALLOCATE: another contestant waits on the same GPU
        settings = {"KERAS_BACKEND": "jax", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        self.log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, cwd=ROOT,
            env=os.environ | settings,
        )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        self.log.close()

    def answer(self):
        """Its next line, a dict. Raises ContestantFailed where there is none or it says so."""
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.log.seek(0)
            last = self.log.read().strip().splitlines() or ["without a word"]
            raise ContestantFailed(f"its process ended with code {self.process.returncode}: {last[-1]}")
        answer = json.loads(line)
        if "failed" in answer:
            raise ContestantFailed(answer["failed"])
        return answer

    def round(self, steps):
        """Have it train for so many steps; the answer is a Round."""
        try:
            print(steps, file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass  # it has ended; the answer says how
        return self.answer()


@app.command()
def main(
    sizes: Annotated[str, typer.Option(help="Presets, with commas; base,big on an accelerator, tiny on a CPU.")] = "",
    steps: Annotated[int, typer.Option(min=0, help="Steps of a round; 0: 20, or 5 on a CPU.")] = 0,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each contestant, in turn; the median counts.")] = 3,
    tokens: Annotated[
        int,
        typer.Option(
            min=0, help="Source positions of a step, and as many target positions; 0: 25,088, or 1,024 on a CPU."
        ),
    ] = 0,
    row_length: Annotated[int, typer.Option(min=32, help="Positions of a packed row.")] = 256,
    attention: Annotated[
        str, typer.Option(help="fused: the backend's kernel where it has one; explicit: the formula.")
    ] = "fused",
    warmup_steps: Annotated[int, typer.Option(min=1, help="Of the learning rate.")] = 4000,
    results: Annotated[pathlib.Path | None, typer.Option(help="Write the page here as well.")] = None,
):
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
            preset(name)  # what is none is said before anything is measured
        tasks = [Task(name, tokens, row_length, attention, warmup_steps) for name in names]
        found = [result for task in tasks for result in compare(task, steps, rounds)]
    typer.echo("\n".join([table(found, chip["matrix_flops"]), *notes(found)]))
    if results is not None:
        shape = (
            f"A step: {tokens // row_length} rows of {row_length} source and {row_length} target positions, bfloat16 "
            f"with float32 weights. {rounds} rounds of {steps} steps."
        )
        command = " ".join(["python -m benchmarks.accelerator", *sys.argv[1:]])
        results.write_text(page(chip, found, command, shape), encoding="utf-8")


def compare(task, steps, rounds):
    """One model, all contestants, their rounds in turn. Returns a list of Measurement and Absence."""
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
