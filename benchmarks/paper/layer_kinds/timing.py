"""Seconds of a layer forward, and forward and backward: medians of rounds in which all kinds take turns."""

import time
from collections.abc import Callable, Iterable
from statistics import median
from typing import NamedTuple

import jax
import numpy as np

from benchmarks.paper.layer_kinds.graph import count
from benchmarks.paper.layer_kinds.kinds import Sizes, function_of, training_of

SHORTEST = 0.02  # seconds of a turn: shorter work is repeated within it
BATCH = 2  # sentences


class Effort(NamedTuple):
    """How often each piece of work is timed."""

    rounds: int
    cap: float  # seconds: work that takes longer is timed once


class Cell(NamedTuple):
    """One kind of layer at one n and d, for BATCH sentences."""

    kind: str
    n: int
    d: int
    flops_forward: int  # per sentence
    flops_training: int  # per sentence, forward and backward
    sequential: int
    seconds_forward: float
    seconds_training: float
    is_capped: bool  # timed once: one turn took longer than the cap


class Work:
    """A compiled function with its arguments, which takes its turns."""

    def __init__(self, function: Callable, arguments: tuple, cap: float):
        self.compiled = jax.jit(function).lower(*arguments).compile()
        self.arguments, self.seconds = arguments, []
        first = self.run(1)
        if first <= cap:
            first = self.run(1)  # the very first one pays for memory that is not there yet
        self.is_capped = first > cap
        self.repeats = max(1, int(SHORTEST / max(first, 1e-6)))
        if self.is_capped:
            self.seconds.append(first)

    def run(self, repeats: int) -> float:
        """Run so many times. Returns seconds per time."""
        began = time.perf_counter()
        for _ in range(repeats):
            output = self.compiled(*self.arguments)
        jax.block_until_ready(output)
        return (time.perf_counter() - began) / repeats

    def turn(self) -> None:
        if not self.is_capped:
            self.seconds.append(self.run(self.repeats))


def measure(kinds: Iterable[str], n: int, d: int, sizes: Sizes, effort: Effort) -> list[Cell]:
    """Count and time these kinds at one n and d."""
    works, counts = {}, {}
    generator = np.random.default_rng(0)
    states, gradient = (generator.normal(size=(BATCH, n, d)).astype("float32") for _ in range(2))
    for kind in kinds:
        function = function_of(kind, d, n, sizes)
        training = training_of(function.apply)
        both = (function.apply, (function.weights, states)), (training, (function.weights, states, gradient))
        counts[kind] = [count(jax.make_jaxpr(each)(*arguments)) for each, arguments in both]
        works[kind] = [Work(each, arguments, effort.cap) for each, arguments in both]
    for _ in range(effort.rounds):
        for pair in works.values():
            for work in pair:
                work.turn()
    return [
        Cell(
            kind,
            n,
            d,
            *(counted.flops // BATCH for counted in counts[kind]),
            counts[kind][0].sequential,
            *(median(work.seconds) for work in works[kind]),
            any(work.is_capped for work in works[kind]),
        )
        for kind in works
    ]
