"""What a computation costs, counted in its graph: a jaxpr, the operations of a function that JAX has traced.

Only matrix products count, as is usual. A loop counts as often as it runs, which a `scan` states.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from benchmarks.errors import BenchmarkError


class Counted(NamedTuple):
    """What a graph costs, and how far each of its outputs is from the inputs."""

    flops: int  # a multiplication and an addition are two
    chains: list[int]  # per output: products of the longest chain in which each one waits for the one before it

    @property
    def sequential(self) -> int:
        """Products that must be done one after the other, however many processors there are."""
        return max(self.chains, default=0)


def count(closed) -> Counted:
    """Count a `jax.make_jaxpr(function)(*arguments)`."""
    return count_from(closed.jaxpr, [0] * len(closed.jaxpr.invars))


def count_from(jaxpr, chains: Sequence[int]) -> Counted:
    """Count a jaxpr whose inputs are already at the end of chains of these lengths."""
    reached: dict[Any, int] = dict(zip(jaxpr.invars, chains, strict=True))

    def chain_of(atom) -> int:
        return 0 if hasattr(atom, "val") else reached.get(atom, 0)  # a literal or a constant waits for nothing

    flops = 0
    for equation in jaxpr.eqns:
        work = count_equation(equation, [chain_of(atom) for atom in equation.invars])
        flops += work.flops
        reached.update(zip(equation.outvars, work.chains, strict=True))
    return Counted(flops, [chain_of(atom) for atom in jaxpr.outvars])


def count_equation(equation, chains: list[int]) -> Counted:
    """Count one operation. Raises BenchmarkError for a loop that does not state how often it runs."""
    name, outputs = equation.primitive.name, len(equation.outvars)
    if name == "dot_general":
        return Counted(product_flops(equation), [max(chains) + 1])
    if name == "scan":
        return count_scan(equation, chains)
    if name == "while":
        raise BenchmarkError("The graph has a loop that does not state how often it runs: use a scan.")
    if name == "cond":
        branches = [count_from(branch.jaxpr, chains[1:]) for branch in equation.params["branches"]]
        longest = [max(chains[0], *each) for each in zip(*(branch.chains for branch in branches), strict=True)]
        return Counted(max(branch.flops for branch in branches), longest)
    inner = next((equation.params[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if key in equation.params), None)
    if inner is not None:
        return count_from(getattr(inner, "jaxpr", inner), chains)
    return Counted(0, [max(chains, default=0)] * outputs)


def count_scan(equation, chains: list[int]) -> Counted:
    """Count a loop: its body as often as it runs, each time with the state that the time before has left."""
    body, length = equation.params["jaxpr"].jaxpr, equation.params["length"]
    constants, carried = equation.params["num_consts"], equation.params["num_carry"]
    fixed, state, items = chains[:constants], chains[constants : constants + carried], chains[constants + carried :]
    flops, collected = 0, [0] * (len(body.outvars) - carried)
    for _ in range(length):
        work = count_from(body, [*fixed, *state, *items])
        flops, state = flops + work.flops, work.chains[:carried]
        collected = list(map(max, collected, work.chains[carried:]))
    return Counted(flops, [*state, *collected])


def product_flops(equation) -> int:
    """2 * elements of the result * length of the sums."""
    (contracted, _), _ = equation.params["dimension_numbers"]
    shape = equation.invars[0].aval.shape
    return 2 * math.prod(equation.outvars[0].aval.shape) * math.prod(shape[axis] for axis in contracted)


def loop_steps(jaxpr) -> int:
    """Return the steps of the longest loop in a jaxpr; 1 if it has none."""
    longest = 1
    for equation in jaxpr.eqns:
        inner = next((equation.params[key] for key in ("jaxpr", "call_jaxpr") if key in equation.params), None)
        if inner is not None:
            steps = equation.params["length"] if equation.primitive.name == "scan" else 1
            longest = max(longest, steps * loop_steps(getattr(inner, "jaxpr", inner)))
    return longest
