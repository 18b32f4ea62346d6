"""A decoder block at one position of K hypotheses per sentence: pure functions of the weights of its layers.

Each function computes what the layers compute (`keras_transformer/layers`), in fewer passes and without repeating what
earlier positions have computed.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_transformer.layers.attention import MASKED_SCORE, MultiHeadAttention, at_least_float32, rotated
from keras_transformer.layers.blocks import DecoderBlock, MemoryBlock
from keras_transformer.layers.gather import rows_at
from keras_transformer.layers.ssru import SSRU, SSRUDecoderBlock


class Cache(NamedTuple):
    """Keys and values that one block attends to: E entries of earlier positions, or the S tokens of the source."""

    keys: Any  # (B, h, E, d_k); of the source they are multiplied by the factor of scores
    values: Any  # (B, h, E, d_v)


class JoinedProjection(NamedTuple):
    """The projections of queries, keys and values side by side: one matrix product in place of three."""

    kernel: Any  # (d_model, h * (2 d_k + d_v)); the part of the queries has the factor of scores
    bias: Any  # (h * (2 d_k + d_v),), or None


def bias_of_mask(mask):
    """Return 0 where `mask` is True, and MASKED_SCORE elsewhere: what `biased_attention` adds to the scores.

    Shapes: mask bool (B, Q, K) -> float32 (B, 1, Q, K), the same for every head.
    """
    return ops.expand_dims(ops.cast(ops.logical_not(mask), "float32") * MASKED_SCORE, 1)


def biased_attention(query, key, value, bias):
    """Compute `scaled_dot_product_attention` in few passes, if each query may attend to something.

        output = softmax(query @ key^T + bias) @ value

    Shapes: query (B, H, Q, d_k); key (B, H, K, d_k); one of both has the factor of scores; value (B, H, K, d_v);
    bias float32 of `bias_of_mask`. Returns output (B, H, Q, d_v) and weights (B, H, Q, K), which have at least the
    precision of float32.
    """
    scores = at_least_float32(ops.matmul(query, ops.swapaxes(key, -1, -2)))
    weights = ops.softmax(scores + ops.cast(bias, scores.dtype), axis=-1)
    return ops.matmul(ops.cast(weights, value.dtype), value), weights


def joined_projection(attention: MultiHeadAttention) -> JoinedProjection:
    """Return the three projections of a self-attention as one. A search computes it once."""
    projections = (attention.query_projection, attention.key_projection, attention.value_projection)
    scales = (attention.score_factor, 1.0, 1.0)

    def joined(name: str):
        parts = [getattr(layer, name) * scale for layer, scale in zip(projections, scales, strict=True)]
        return ops.cast(ops.concatenate(parts, axis=-1), attention.compute_dtype)

    return JoinedProjection(joined("kernel"), joined("bias") if attention.use_bias else None)


def project_memory(attention: MultiHeadAttention, memory) -> Cache:
    """Return the keys (B, h, S, d_k) and values (B, h, S, d_v) of the encoder's output (B, S, d_model).

    The keys are multiplied by the factor of scores, once for all queries that will come.
    """
    keys = attention.key_projection(memory) * attention.score_factor
    return Cache(*map(attention.split_heads, (keys, attention.value_projection(memory))))


def step_of_self_attention(
    block: DecoderBlock, projection: JoinedProjection, states, cache: Cache, write: Callable, bias, rotation=None
) -> tuple:
    """Compute the self-attention of a block at one position of K hypotheses of each of B sentences, with its residual.

    Shapes: states (B * K, d_model); `write(array, new)` adds (B, h, K, width) to the keys or the values of the cache;
    bias (B, 1 or h, K, E') of `bias_of_mask`: which entries a hypothesis attends to, its own new one included, and the
    bias of positions; rotation (1, 1, 2 d_k) of queries and keys, rotated before they become entries, or None.
    Returns states (B * K, d_model) and the cache with E' entries.
    """
    attention = block.self_attention
    projected = ops.matmul(block.self_attention_residual.sublayer_input(states), projection.kernel)
    if projection.bias is not None:
        projected = projected + projection.bias
    hypotheses = bias.shape[2]
    query, keys, values = split_projected(attention, projected, hypotheses)
    if rotation is not None:
        query, keys = ops.split(rotated(ops.concatenate([query, keys], axis=1), rotation), 2, axis=1)
    cache = Cache(write(cache.keys, keys), write(cache.values, values))
    heads, _ = biased_attention(query, *cache, bias)
    output = attention.output_projection(concatenate_hypotheses(heads, hypotheses))
    return block.self_attention_residual.add_and_norm(states, output), cache


def step_of_memory_attention(block: MemoryBlock, states, memory: Cache, bias, hypotheses: int) -> tuple:
    """Compute the attention of a block to the encoder's output at one position, with its residual.

    Shapes: states (B * K, d_model), bias (B, 1, 1, S). Returns states and attention weights (B, h, K, S).
    """
    query = block.memory_attention_residual.sublayer_input(states)
    output, weights = attend_to_memory(block.memory_attention, query, memory, bias, hypotheses)
    return block.memory_attention_residual.add_and_norm(states, output), weights


def attend_to_memory(attention: MultiHeadAttention, states, memory: Cache, bias, hypotheses: int):
    """Attend from one position of K hypotheses per sentence to the encoder's output.

    Shapes: states (B * K, d_model), bias (B, 1, 1, S) of `bias_of_mask`: the real source positions. Returns output
    (B * K, d_model) and attention weights (B, h, K, S).
    """
    query = split_hypotheses(attention.num_heads, attention.query_projection(states), hypotheses)
    heads, weights = biased_attention(query, *memory, bias)
    return attention.output_projection(concatenate_hypotheses(heads, hypotheses)), weights


def split_projected(attention: MultiHeadAttention, projected, hypotheses: int) -> list:
    """Return queries, keys and values, each (B, h, K, width), of their projections side by side (B * K, any width)."""
    if attention.key_dim == attention.value_dim:  # all heads in one transposition
        heads = split_hypotheses(3 * attention.num_heads, projected, hypotheses)
        return ops.split(heads, 3, axis=1)
    width = attention.num_heads * attention.key_dim
    parts = ops.split(projected, [width, 2 * width], axis=-1)
    return [split_hypotheses(attention.num_heads, part, hypotheses) for part in parts]


def split_hypotheses(num_heads: int, states, hypotheses: int):
    """(B * K, h * width) -> (B, h, K, width)"""
    width = states.shape[-1] // num_heads
    return transposed(ops.reshape(states, (-1, hypotheses * num_heads, width)), hypotheses, num_heads)


def concatenate_hypotheses(heads, hypotheses: int):
    """(B, h, K, d_v) -> (B * K, h * d_v)"""
    _, num_heads, _, width = heads.shape
    rows = transposed(ops.reshape(heads, (-1, num_heads * hypotheses, width)), num_heads, hypotheses)
    return ops.reshape(rows, (-1, num_heads * width))


def transposed(items, rows: int, columns: int):
    """(B, rows * columns, width) -> (B, columns, rows, width)

    On TensorFlow the few rows of a step are gathered, which takes a fraction of the time of its transposition.
    """
    if keras.backend.backend() != "tensorflow":
        width = items.shape[-1]
        return ops.transpose(ops.reshape(items, (-1, rows, columns, width)), (0, 2, 1, 3))
    places = np.arange(rows * columns, dtype="int32").reshape(rows, columns).T
    return rows_at(items, places, axis=1)


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
