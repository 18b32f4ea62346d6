"""Who trains in `benchmarks/train_speed.py`: each a module with a function that gives a Contestant."""

import importlib
import os
from collections.abc import Callable
from typing import NamedTuple

PREPARE = {  # name -> the function that makes it ready, imported in the contestant's own process
    "ours": "benchmarks.contestants.ours:prepare",
    "torch_eager": "benchmarks.contestants.torch_transformer:prepare_eager",
    "torch_compile": "benchmarks.contestants.torch_transformer:prepare_compiled",
    "keras_hub": "benchmarks.contestants.keras_hub_layers:prepare",
    "gemm_peak": "benchmarks.contestants.matrix_product:prepare",
    "torch_eager_paper_dropout": "benchmarks.contestants.torch_transformer:prepare_eager_paper_dropout",
    "torch_compile_paper_dropout": "benchmarks.contestants.torch_transformer:prepare_compiled_paper_dropout",
}
USUAL = "ours", "torch_eager", "torch_compile", "keras_hub", "gemm_peak"  # unless others are asked for
PACKAGES = {name: name.split("_")[0] for name in PREPARE if name.startswith("torch")} | {"keras_hub": "keras_hub"}


class Lane(NamedTuple):
    """One thing that a contestant can be timed at."""

    run: Callable[[int], float]  # do so many steps; returns, when the last is finished, a number it found: the loss
    work: float  # of one step: target tokens, of a matrix product FLOPs


class Contestant(NamedTuple):
    """What runs in a process of its own. `loss`: of the batch at the starting weights without dropout, nats a token."""

    lanes: dict[str, Lane]
    parameters: int | None = None
    loss: float | None = None


def cores():
    """Cores that this process may use: everybody gets all of them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def prepare(name, workload):
    """The Contestant of that name, ready to train on a Workload."""
    module, function = PREPARE[name].split(":")
    return getattr(importlib.import_module(module), function)(workload)
