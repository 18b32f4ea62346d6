"""The contestants of `benchmarks/speed/train.py`: modules with a function that prepares a Contestant."""

import importlib
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.speed.contestants.workload import Workload

PREPARE = {  # name -> the function that prepares it, imported in the contestant's own process
    "ours": "benchmarks.speed.contestants.ours:prepare",
    "ours_bfloat16": "benchmarks.speed.contestants.ours:prepare_bfloat16",
    "torch_eager": "benchmarks.speed.contestants.torch_transformer:prepare_eager",
    "torch_compile": "benchmarks.speed.contestants.torch_transformer:prepare_compiled",
    "torch_compile_bfloat16": "benchmarks.speed.contestants.torch_transformer:prepare_compiled_bfloat16",
    "keras_hub": "benchmarks.speed.contestants.keras_hub_layers:prepare",
    "gemm_peak": "benchmarks.speed.contestants.matrix_product:prepare",
    "torch_eager_paper_dropout": "benchmarks.speed.contestants.torch_transformer:prepare_eager_paper_dropout",
    "torch_compile_paper_dropout": "benchmarks.speed.contestants.torch_transformer:prepare_compiled_paper_dropout",
}
USUAL = "ours", "torch_eager", "torch_compile", "keras_hub", "gemm_peak"  # the default of --contestants
PACKAGES = {name: name.split("_")[0] for name in PREPARE if name.startswith("torch")} | {"keras_hub": "keras_hub"}


class Lane(NamedTuple):
    """One kind of step that a contestant can be timed at."""

    run: Callable[[int], float]  # runs that number of steps to their end and returns the loss, or another result
    work: float  # of one step: target tokens, or FLOPs of a matrix product


class Contestant(NamedTuple):
    """What runs in a process of its own. `loss`: at the starting weights, without dropout, in nats per token."""

    lanes: dict[str, Lane]
    parameters: int | None = None
    loss: float | None = None


def prepare(name: str, workload: Workload) -> Contestant:
    """The Contestant of that name, ready to train on a Workload."""
    module, function = PREPARE[name].split(":")
    return getattr(importlib.import_module(module), function)(workload)
