"""The measurements as a table and as a page."""

import dataclasses
import statistics
from collections.abc import Sequence
from typing import Any

PAPER_STEPS = {"big": 300_000}  # section 5.3; 100,000 for base
HEAD = (
    "model", "contestant", "target tokens/s", "model TFLOP/s", "share of the matrix product", "hours", "until ready",
    "peak memory", "loss",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One contestant with one model. `rounds` are dicts of the fields of training.Round, at least one."""

    size: str
    contestant: str
    ready_seconds: float  # building, compiling and the first step
    tokens_per_step: float  # real target tokens, mean over the batches
    flops_per_step: float  # of the model, mean over the batches
    rounds: list[dict[str, Any]]
    notes: list[str]

    @property
    def seconds_per_step(self) -> float:
        """The median over rounds."""
        return statistics.median(found["seconds"] / found["steps"] for found in self.rounds)

    @property
    def steps_of_the_paper(self) -> int:
        return PAPER_STEPS.get(self.size, 100_000)

    @property
    def hours(self) -> float:
        """The time that the paper's number of steps would take."""
        return self.steps_of_the_paper * self.seconds_per_step / 3600

    def row(self, matrix_flops: float) -> tuple[str, ...]:
        flops = self.flops_per_step / self.seconds_per_step
        peak = self.rounds[-1]["peak_bytes"]
        return (
            self.size,
            self.contestant,
            f"{self.tokens_per_step / self.seconds_per_step:,.0f}",
            f"{flops / 1e12:.4g}",
            f"{flops / matrix_flops:.1%}",
            f"{self.hours:,.2f} for {self.steps_of_the_paper:,} steps",
            f"{self.ready_seconds:.0f} s",
            "unknown" if peak is None else f"{peak / 2**30:.1f} GiB",
            f"{self.rounds[0]['first_loss']:.3f} to {self.rounds[-1]['last_loss']:.3f}",
        )


@dataclasses.dataclass(frozen=True)
class Absence:
    """A contestant that could not be measured, with the reason."""

    size: str
    contestant: str
    reason: str

    def row(self, matrix_flops: float) -> tuple[str, ...]:
        return (self.size, self.contestant, f"not measured: {self.reason}", *[""] * (len(HEAD) - 3))


def table(results: Sequence["Measurement | Absence"], matrix_flops: float) -> str:
    """A Markdown table with one row per result."""
    rows = [HEAD, ["---"] * len(HEAD), *(result.row(matrix_flops) for result in results)]
    return "\n".join("| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in rows)


def notes(results: Sequence["Measurement | Absence"]) -> list[str]:
    """One line per note of a contestant."""
    return [
        f"{result.size}, {result.contestant}: {note}"
        for result in results
        if isinstance(result, Measurement)
        for note in result.notes
    ]


def chip_line(chip: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in chip["versions"].items())
    return (
        f"{chip['name']} ({chip['platform']}); a bfloat16 product of {chip['matrix_size']:,}-wide matrices runs at "
        f"{chip['matrix_flops'] / 1e12:.4g} TFLOP/s; {versions}"
    )


def page(chip: dict[str, Any], results: Sequence["Measurement | Absence"], command: str, shape: str) -> str:
    """The content of benchmarks/results/accelerator.md."""
    parts = ["# Training on an accelerator"]
    if chip["platform"] == "cpu":
        parts.append(
            "**No accelerator was available.** The numbers below are those of a CPU, which may have done other work "
            "at the same time,\nwith a small model. They show that the benchmark runs, not how fast a chip is. On a "
            "machine with an accelerator, the same\ncommand fills this page with base and big. The goals on one H200 "
            "are 45 per cent of the measured matrix product for base\nand 55 for big, both faster than torch.compile; "
            "the paper's base run then takes under 2 hours."
        )
    parts += [f"`{command}`", chip_line(chip), shape, table(results, chip["matrix_flops"])]
    parts += ["\n".join(f"- {note}" for note in notes(results))] if notes(results) else []
    parts.append(EXPLANATION)
    return "\n\n".join(parts) + "\n"


EXPLANATION = """\
Model FLOPs are those of `train/cost/cost.py`: the matrix products over real tokens, if each sentence attends only
to itself; the backward pass counts twice the forward pass. Work on padding, between the sentences of a row, or done a
second time counts for nothing. Both contestants are credited with the same FLOPs. Rounds of steps alternate between
them; the median round counts. "Until ready": building, compiling and the first step. "Loss": label-smoothed, in nats
per token, from the first measured step to the last, on ids drawn by Zipf's law.

`torch.nn.Transformer` has the same widths, dropout places, loss, optimizer and tied embedding, and attention biases and
two LayerNorms of its own. It attends over whole rows by its causal flag alone, so that PyTorch can choose its fastest
kernel; `keras_transformer` keeps the sentences of a row apart, as training does.
"""
