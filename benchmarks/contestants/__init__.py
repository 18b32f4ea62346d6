"""Who trains in `benchmarks/train_speed.py`: each a module with a function that gives a Contestant."""

import importlib
from collections.abc import Callable
from typing import NamedTuple

PREPARE = {  # name -> the function that makes it ready, imported in the contestant's own process
    "ours": "benchmarks.contestants.ours:prepare",
    "torch_eager": "benchmarks.contestants.torch_transformer:prepare_eager",
    "torch_compile": "benchmarks.contestants.torch_transformer:prepare_compiled",
    "keras_hub": "benchmarks.contestants.keras_hub_layers:prepare",
    "gemm_peak": "benchmarks.contestants.matrix_product:prepare",
}
PACKAGES = {"torch_eager": "torch", "torch_compile": "torch", "keras_hub": "keras_hub"}  # what it needs


class Lane(NamedTuple):
    """One thing that a contestant can be timed at."""

    run: Callable[[int], float]  # do so many steps; returns, when the last is finished, a number it found: the loss
    work: float  # of one step: target tokens, of a matrix product FLOPs


class Contestant(NamedTuple):
    """What runs in a process of its own. `loss`: of the batch at the starting weights without dropout, nats a token."""

    lanes: dict[str, Lane]
    parameters: int | None = None
    loss: float | None = None


def prepare(name, workload):
    """The Contestant of that name, ready to train on a Workload."""
    module, function = PREPARE[name].split(":")
    return getattr(importlib.import_module(module), function)(workload)
