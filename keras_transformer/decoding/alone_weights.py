"""Weights of layers as tensors, and what a few rows of states need of them, in few operations."""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.decoding.gather import rows_at
from keras_transformer.layers.blocks import PostNormResidual, Residual


class Affine(NamedTuple):
    """x W + b."""

    kernel: Any
    bias: Any  # or None

    def __call__(self, states):
        product = ops.matmul(states, self.kernel)
        return product if self.bias is None else product + self.bias


class Norm(NamedTuple):
    """LayerNorm and the residual sum around a sublayer, with its weights as tensors."""

    gamma: Any
    beta: Any
    epsilon: float
    is_post: bool

    def __call__(self, states):
        centred = states - ops.mean(states, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
        return centred * (ops.rsqrt(variance + self.epsilon) * self.gamma) + self.beta

    def sublayer_input(self, states):
        return states if self.is_post else self(states)

    def add_and_norm(self, states, output):
        return self(states + output) if self.is_post else states + output


def affine(dense) -> Affine:
    """Return the weights of a Dense layer as tensors."""
    return Affine(ops.convert_to_tensor(dense.kernel), ops.convert_to_tensor(dense.bias) if dense.use_bias else None)


def norm_weights(norm) -> tuple[Any, Any, float]:
    return ops.convert_to_tensor(norm.gamma), ops.convert_to_tensor(norm.beta), norm.epsilon


def norm_of(residual: Residual) -> Norm:
    """Return the LayerNorm of a residual connection as tensors."""
    return Norm(*norm_weights(residual.norm), is_post=isinstance(residual, PostNormResidual))


def heads_of(projected, count, heads: int):
    """Return queries, keys and values of their projections side by side: (N, 3 h d) -> each (h, N, d).

    For few rows, gathering takes less than the transposition that it is. `count` is N.
    """
    rows = ops.reshape(projected, (-1, projected.shape[1] // (3 * heads)))
    return ops.split(rows_at(rows, transposed_places(count, 3 * heads)), 3, axis=0)


def merged(heads, count):
    """(h, N, d) -> (N, h d)"""
    number, _, width = heads.shape
    rows = rows_at(ops.reshape(heads, (-1, width)), transposed_places(number, count))  # (N, h, d)
    return ops.reshape(rows, (-1, number * width))


def transposed_places(rows, columns):
    """Return where the items of the transpose of a matrix stand in it, counted row by row: int32 (columns, rows)."""
    return ops.expand_dims(ops.arange(columns), 1) + columns * ops.expand_dims(ops.arange(rows), 0)


def feed(layer, states):
    """The feed-forward network: (N, d_model) -> (N, d_model)."""
    return affine(layer.outer)(layer.inner.activation(affine(layer.inner)(states)))
