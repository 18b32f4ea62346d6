"""The maximum path length of Table 1, measured with gradients."""

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.paper.layer_kinds.graph import loop_steps
from benchmarks.paper.layer_kinds.kinds import Sizes, function_of

WIDTH = 8  # of the states: the path does not depend on it


def layers_needed(kind: str, n: int, sizes: Sizes) -> int:
    """Return how many layers a signal needs between the first and the last of n positions.

    The gradient of output 0 is taken back through one layer after the other, until it is not zero at input n - 1. Each
    layer has states that are drawn at random. After each layer the gradient at each position is divided by its own
    largest number: of the many ways back most end near the middle of what is reached, and after hundreds of layers the
    rim of it would be too small for float32. A forward recurrent layer never shows position 0 what comes later; there
    it is the gradient of output n - 1 at input 0.
    """
    ends = (n - 1, 0) if kind == "recurrent" else (0, n - 1)
    gradient = np.zeros((1, n, WIDTH), "float32")
    gradient[0, ends[0]] = 1.0
    generator, back = np.random.default_rng(0), None
    for number in range(1, n + 1):
        if back is None or kind == "dilated":
            back = back_through(kind, n, sizes, number)
        states = generator.normal(size=gradient.shape).astype("float32")
        gradient = back(states, gradient)
        if np.any(np.asarray(gradient[0, ends[1]])):
            return number
    raise ArithmeticError(f"No signal passed between {ends[0]} and {ends[1]} through {n} layers of kind {kind}.")


def back_through(kind: str, n: int, sizes: Sizes, number: int):
    """Return the function from (states, gradient of a layer's output) to the gradient of its input.

    At each position its largest number is 1, or all of it is zero.
    """
    function = function_of(kind, WIDTH, n, sizes, number)
    weights = [keeping(value) if kind == "recurrent" else value for value in function.weights]

    @jax.jit
    def back(states, gradient):
        _, backward = jax.vjp(lambda states: function.apply(weights, states), states)
        [influence] = backward(gradient)
        largest = jnp.max(jnp.abs(influence), axis=-1, keepdims=True)
        return influence / jnp.where(largest == 0, 1, largest)

    return back


def keeping(value):
    """Let the update gate of a GRU keep nearly everything: with other weights the gradient vanishes on the way."""
    if value.shape != (3 * WIDTH,):
        return value
    return value.at[WIDTH : 2 * WIDTH].set(3.0)  # twice, in both biases: z = sigmoid(6) = 0.998


def steps_inside(kind: str, n: int, sizes: Sizes) -> int:
    """Return how many steps of a recurrence the path passes within one layer: n if the layer is a loop, else 1."""
    function = function_of(kind, WIDTH, n, sizes)
    states = jax.ShapeDtypeStruct((1, n, WIDTH), "float32")
    return loop_steps(jax.make_jaxpr(function.apply)(function.weights, states).jaxpr)
