"""The kinds of layer in Table 1: what the paper says of each, and the layer of this project as a function of JAX.

Importing it imports Keras, which must run on JAX.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import keras
import numpy as np

from keras_transformer.layers import MultiHeadAttention, RestrictedSelfAttention, SegmentConvolution
from keras_transformer.layers.recurrent import Recurrent
from keras_transformer.masks import neighbourhood_mask

HEAD = 64  # d_k of the paper: 8 heads at d_model 512, 1 at 64


class Sizes(NamedTuple):
    """The letters of Table 1 besides n and d."""

    kernel: int = 3  # k
    neighbourhood: int = 17  # r


class Function(NamedTuple):
    """A layer as a function of its weights and its input, and weights for it."""

    apply: Callable  # (weights, states (B, n, d)) -> (B, n, d)
    weights: list[Any]


def layer_of(kind: str, d_model: int, sizes: Sizes, number: int = 1) -> keras.layers.Layer:
    """The layer of that kind; `number` counts the layers of a stack from 1."""
    heads = max(1, d_model // HEAD)
    if kind == "recurrent":
        return Recurrent(d_model, "gru", "forward")
    if kind == "convolutional":
        return SegmentConvolution(sizes.kernel)
    if kind == "dilated":
        return SegmentConvolution(sizes.kernel, dilation=2 ** (number - 1))
    if kind == "restricted":
        return RestrictedSelfAttention(heads, d_model // heads, sizes.neighbourhood)
    return MultiHeadAttention(heads, d_model // heads)  # self_attention and masked


def function_of(kind: str, d_model: int, n: int, sizes: Sizes, number: int = 1) -> Function:
    """The layer of that kind on rows that are one sentence of n words each."""
    layer = layer_of(kind, d_model, sizes, number)
    layer.build((None, n, d_model))
    segments = np.ones((1, n), "int32")
    mask = neighbourhood_mask(segments, sizes.neighbourhood) if kind == "masked" else None
    weights = [variable.value for variable in layer.trainable_variables]

    def apply(weights, states):
        if isinstance(layer, MultiHeadAttention) and kind != "restricted":
            arguments = (states, mask)
        else:
            arguments = (np.broadcast_to(segments, (states.shape[0], n)),)
        output, _ = layer.stateless_call(weights, [], states, *arguments)
        return output[0] if isinstance(output, tuple | list) else output

    return Function(apply, weights)


def training_of(apply: Callable) -> Callable:
    """Forward and backward: the gradients of (weights, states) for a gradient of the output."""

    def both(weights, states, gradient):
        output, backward = jax.vjp(apply, weights, states)
        return output, backward(gradient)

    return both
