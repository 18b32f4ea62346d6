"""The measurements as a table, as a page and as JSON."""

import dataclasses
import json
import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.speed.on_accelerator.chip import Chip
from benchmarks.speed.on_accelerator.task import CONTESTANTS, CUBLAS, Round

NO_ACCELERATOR = "**No accelerator was found.** The numbers are those of a CPU: they show that the benchmark runs."
HEAD = (
    "model",
    "contestant",
    "matrices",
    "target tokens/s",
    "ms per step",
    "model TFLOP/s",
    "share of the measured product",
    "share of the nominal peak",
    "until ready",
    "peak memory",
    "loss",
)


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One contestant with one model: its rounds, or why there are none."""

    size: str  # the name of a preset
    name: str  # of the contestant
    tokens_per_step: float  # real target tokens, mean over the batches
    flops_per_step: float  # of the model, mean over the batches
    ready_seconds: float | None = None  # from the start of its process to the end of its first steps
    rounds: tuple[Round, ...] = ()
    failure: str | None = None  # why there are no rounds, or no more

    @property
    def seconds_per_step(self) -> float:
        """The median over rounds."""
        return statistics.median(round.seconds / round.steps for round in self.rounds)

    def row(self, chip: Chip) -> tuple[str, ...]:
        contestant = CONTESTANTS[self.name]
        start = (self.size, contestant.label, contestant.products)
        if not self.rounds:
            return (*start, f"not measured: {self.failure}", *[""] * (len(HEAD) - 4))
        flops, peak = self.flops_per_step / self.seconds_per_step, self.rounds[-1].peak_bytes
        nominal = chip.nominal.get(contestant.products)
        return (
            *start,
            f"{self.tokens_per_step / self.seconds_per_step:,.0f}",
            f"{1000 * self.seconds_per_step:.1f}",
            f"{flops / 1e12:.4g}",
            f"{flops / chip.measured[contestant.products]:.1%}",
            "unknown" if nominal is None else f"{flops / nominal:.1%}",
            f"{self.ready_seconds:.0f} s",
            "unknown" if peak is None else f"{peak / 2**30:.1f} GiB",
            f"{self.rounds[0].loss:.3f} to {self.rounds[-1].loss:.3f}",
        )


def table(measurements: Sequence[Measurement], chip: Chip) -> str:
    """A Markdown table with one row per contestant."""
    return markdown(HEAD, [measurement.row(chip) for measurement in measurements])


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "/") for cell in line) + " |" for line in lines)


def chip_lines(chip: Chip) -> str:
    """The device, its speeds and the versions of the packages."""
    versions = ", ".join(f"{name} {version}" for name, version in chip.versions.items())
    speeds = [
        f"{products} {flops / 1e12:.4g} TFLOP/s"
        + (f" (nominal {chip.nominal[products] / 1e12:.4g})" if products in chip.nominal else "")
        for products, flops in chip.measured.items()
    ]
    size = f"{chip.matrix_size:,}"
    nominal = f" (nominal {chip.nominal_bandwidth / 1e9:,.0f})" if chip.nominal_bandwidth else ""
    return (
        f"{chip.name} ({chip.platform}); {versions}\n\nProducts of {size}-wide matrices: {', '.join(speeds)}. "
        f"Copies in memory: {chip.bandwidth / 1e9:,.0f} GB/s{nominal}."
    )


def page(chip: Chip, measurements: Sequence[Measurement], command: str, shape: str) -> str:
    """The page in Markdown."""
    cut_short = [
        f"- {m.size}, {CONTESTANTS[m.name].label}: {len(m.rounds)} rounds, then: {m.failure}"
        for m in measurements
        if m.rounds and m.failure
    ]
    parts = ["# Training on an accelerator"] + [NO_ACCELERATOR] * (chip.platform == "cpu")
    parts += [f"`{command}`", chip_lines(chip), shape, table(measurements, chip)]
    parts += ["\n".join(cut_short)] * bool(cut_short)
    return "\n\n".join([*parts, EXPLANATION])


def as_json(chip: Chip, measurements: Sequence[Measurement], command: str, shape: str) -> str:
    """Everything that was measured."""
    heading: dict[str, Any] = {"command": command, "shape": shape, "chip": chip._asdict()}
    rows = [
        vars(m)
        | {"rounds": [round._asdict() for round in m.rounds], "contestant": CONTESTANTS[m.name]._asdict()}
        | ({"tokens_per_second": m.tokens_per_step / m.seconds_per_step} if m.rounds else {})
        for m in measurements
    ]
    return json.dumps(heading | {"measurements": rows}) + "\n"


EXPLANATION = f"""\
`kt.Transformer.fit` is stock Keras with `KERAS_BACKEND=jax`, as `examples/fit.py` calls it: `compile` with the paper's
optimizer and `LabelSmoothedCrossentropy`, then `fit` on a `keras.utils.PyDataset` of NumPy batches, without metrics and
without a progress bar. bfloat16 is the dtype policy `mixed_bfloat16`, and autocast in PyTorch. In float32, JAX
multiplies matrices in TF32 by default. PyTorch does so only after `torch.set_float32_matmul_precision("high")`, so it
has a row with it and a row without. "cuBLAS alone" is the same program with
`XLA_FLAGS="{CUBLAS}"`: XLA then gives no matrix product
to Triton and joins none.

Each contestant has a process of its own. Rounds of steps alternate between the contestants of one precision, and the
median round counts; a round of ours is one whole call of `fit`, input and all, while PyTorch finds its batches on the
device. "Until ready" is the time from the start of the process
to the end of its first steps; other processes start and compile meanwhile. "Loss" is the mean over the first round and
over the last, on ids drawn by Zipf's law.

Model FLOPs are those of `train/cost/cost.py`: the matrix products over real tokens, if each sentence attends only
to itself; the backward pass counts twice the forward pass. Work on padding, between the sentences of a row, or done a
second time counts for nothing. All contestants are credited with the same FLOPs. A share is of the product, measured or
promised by the maker, of matrices of the same kind.

`torch.nn.Transformer` has the same widths, dropout places, loss, optimizer and tied embedding, and attention biases and
two LayerNorms of its own. It attends over whole rows by its causal flag alone, so that PyTorch can choose its fastest
kernel; `keras_transformer` keeps the sentences of a row apart, as training does.
"""
