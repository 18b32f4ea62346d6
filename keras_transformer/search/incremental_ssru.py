"""An SSRU at one position of several hypotheses: pure functions of the weights of its layer."""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.layers.attention import at_least_float32
from keras_transformer.layers.ssru import SSRU, SSRUDecoderBlock


class JoinedGate(NamedTuple):
    """Both matrices of an SSRU side by side: one product in place of two."""

    kernel: Any  # (d_model, 2 * d_model): W_f, then W
    bias: Any  # (d_model,): b_f


def joined_gate(ssru: SSRU) -> JoinedGate:
    """Return the weights of an SSRU. A search computes them once."""
    kernel = ops.concatenate([ssru.forget.kernel, ssru.value.kernel], axis=1)
    return JoinedGate(*(ops.cast(weight, ssru.compute_dtype) for weight in (kernel, ssru.forget.bias)))


def step_of_ssru(block: SSRUDecoderBlock, gate: JoinedGate, states, average) -> tuple:
    """Compute the first sublayer of a block at one position, with its residual.

    Shapes: states and average, which is of the positions before, (N, d_model). Returns both, one position later.
    """
    projected = ops.matmul(block.ssru_residual.sublayer_input(states), gate.kernel)
    forget, value = ops.split(projected, 2, axis=1)
    forget, value = ops.sigmoid(at_least_float32(forget + gate.bias)), at_least_float32(value)
    average = value + forget * (average - value)
    output = ops.cast(ops.relu(average), states.dtype)
    return block.ssru_residual.add_and_norm(states, output), average
