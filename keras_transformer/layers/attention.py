"""Scaled dot-product attention and multi-head attention (Vaswani et al. 2017, section 3.2)."""

import operator
import warnings

import keras
from keras import ops

from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.layers.fused_attention import fused_attention, has_fused_kernel
from keras_transformer.masks import mask_of

MASKED_SCORE = -1e30  # finite, so that max() and exp() of a fully masked row stay finite; lower than any real score
LARGEST_FLOAT16 = 65504.0


def scaled_dot_product_attention(query, key, value, mask=None, factor: float | None = None, bias=None):
    """Average `value` by how well each `key` answers each `query` (Vaswani et al. 2017, eq. 1).

        weights = softmax(query @ key^T * factor + bias)        output = weights @ value

    `factor` None is that of the paper, 1 / sqrt(d_k), and `bias` None is 0.

    Shapes, with B batch, H heads, Q queries, K keys:
        query (B, H, Q, d_k)   key (B, H, K, d_k)   value (B, H, K, d_v)
        mask  bool, broadcast to (B, H, Q, K); True means "may attend"
        bias  of positions, broadcast to (B, H, Q, K)

    Returns output (B, H, Q, d_v) and weights (B, H, Q, K), whose rows sum to 1. A query that may attend to nothing
    has weights and output 0. Integers are converted to `keras.config.floatx()`.
    """
    query, key, value = map(as_floats, (query, key, value))
    factor = ops.shape(query)[-1] ** -0.5 if factor is None else factor
    query = query * ops.cast(factor, query.dtype)
    scores = ops.matmul(query, ops.swapaxes(key, -1, -2))  # (B, H, Q, K)
    if bias is not None:
        scores = at_least_float32(scores)
        scores = scores + ops.cast(bias, scores.dtype)
    weights = ops.cast(masked_softmax(scores, mask), value.dtype)
    return ops.matmul(weights, value), weights


def rotated(heads, rotation):
    """Turn each pair of channels i and i + d_k / 2 of queries or keys by an angle (Su et al. 2021, eq. 34).

    Shapes: heads (B, H, L, d_k); rotation (B, L, 2 d_k) of `rotation_of`; each axis but the last may be 1.
    """
    cosines, sines = ops.split(ops.cast(ops.expand_dims(rotation, 1), heads.dtype), 2, axis=-1)
    first, second = ops.split(heads, 2, axis=-1)
    return heads * cosines + ops.concatenate([second, first], axis=-1) * sines


def as_floats(values):
    """Return values as a tensor of floats: floats keep their type, integers get `keras.config.floatx()`."""
    values = ops.convert_to_tensor(values)
    return values if keras.backend.is_float_dtype(values.dtype) else ops.cast(values, keras.config.floatx())


def masked_softmax(scores, mask):
    """Softmax over the last axis among the places where `mask` is True; 0 in all other places.

    A row without a single True is all 0. The result has at least the precision of float32, whatever that of `scores`.

    Shapes: scores (..., K); mask bool, broadcast to scores. Returns (..., K).
    """
    scores = at_least_float32(scores)
    if mask is None:
        return ops.softmax(scores, axis=-1)
    scores = ops.where(mask, scores, MASKED_SCORE)
    highest = ops.stop_gradient(ops.max(scores, axis=-1, keepdims=True, initial=MASKED_SCORE))
    unnormalised = ops.where(mask, ops.exp(scores - highest), 0.0)
    total = ops.sum(unnormalised, axis=-1, keepdims=True)
    return unnormalised / ops.maximum(total, 1e-30)


def at_least_float32(scores):
    """Return scores in float32, or in float64 if they have it. Infinite scores of float16 become finite."""
    if keras.backend.standardize_dtype(scores.dtype) == "float16":
        scores = ops.clip(scores, -LARGEST_FLOAT16, LARGEST_FLOAT16)  # the softmax of infinity would be NaN
    return ops.cast(scores, keras.backend.result_type(scores.dtype, "float32"))


class AttentionHeads(CompositeLayer):
    """What every kind of multi-head attention has: heads of these widths, and their projections.

    Arguments as for MultiHeadAttention.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        use_bias: bool = False,
        scale_scores: bool = True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = operator.index(num_heads)
        self.key_dim = operator.index(key_dim)
        self.value_dim = operator.index(key_dim if value_dim is None else value_dim)
        self.use_bias = use_bias
        self.scale_scores = scale_scores
        for name in ("num_heads", "key_dim", "value_dim"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1. Received: {name}={getattr(self, name)}")

    @property
    def score_factor(self) -> float:
        """By what the product of a query and a key is multiplied."""
        return self.key_dim**-0.5 if self.scale_scores else 1.0

    def build_projections(self, query_shape: tuple, memory_shape: tuple) -> None:
        """Create W^Q, W^K, W^V and W^O, each of all heads."""
        all_heads = (*query_shape[:-1], self.num_heads * self.value_dim)
        self.query_projection = self._projection("query", query_shape, self.num_heads * self.key_dim)
        self.key_projection = self._projection("key", memory_shape, self.num_heads * self.key_dim)
        self.value_projection = self._projection("value", memory_shape, self.num_heads * self.value_dim)
        self.output_projection = self._projection("output", all_heads, query_shape[-1])

    def _projection(self, name: str, input_shape: tuple, width: int) -> keras.layers.Dense:
        initializer: str | keras.Initializer = "glorot_uniform"
        if name == "query" and not self.scale_scores:
            initializer = keras.initializers.VarianceScaling(1 / self.key_dim, "fan_avg", "uniform")
        projection = keras.layers.Dense(
            width, use_bias=self.use_bias, kernel_initializer=initializer, name=name, **self.for_parts()
        )
        projection.build(tuple(input_shape))
        return projection

    def compute_mask(self, query, previous_mask=None):
        """Return the mask that Keras carries with the query: it stays with the output, whatever `mask` is."""
        return mask_of(query)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "use_bias": self.use_bias,
            "scale_scores": self.scale_scores,
        }


@keras.saving.register_keras_serializable("keras_transformer")
class MultiHeadAttention(AttentionHeads):
    """h attention heads side by side, each in its own projection (section 3.2.2).

        head_i = attention(Q W_i^Q, K W_i^K, V W_i^V)        output = concat(head_1, ..., head_h) W^O

    One layer serves the paper's three uses. In self-attention `memory` is `query`, with a mask of segments in the
    encoder and a causal mask in the decoder; in encoder-decoder attention `memory` is the encoder's output.

    Args:
        num_heads: h.
        key_dim: d_k, width of one head's queries and keys; d_model / h in the paper, but any other in Table 3 (B).
        value_dim: d_v, width of one head's values. None means `key_dim`.
        use_bias: add a bias to each projection; the paper has none.
        scale_scores: divide scores by sqrt(d_k), as in the paper. T5 does not (Raffel et al. 2020). Its queries begin
            so much smaller instead, and so they do here: training begins with the same scores.

    Shapes: query (B, Q, d_model), memory (B, K, any width); mask bool (B, Q, K), (B, K) if it is the same for every
    query, or (B, h, Q, K) if the heads differ; memory_mask bool (B, K). Each axis but the last may be 1. A mask of two
    axes is never (Q, K), as it is in Keras' own layer. Both masks must allow a key. Without `memory_mask`, a mask that
    Keras carries with `memory`, as after `keras.layers.Embedding(mask_zero=True)`, takes its place. A mask that Keras
    carries with `query` stays with the output. In self-attention, layers/positions.py gives `bias`, added to scores, or
    `rotation`, of queries and keys.
    Returns output (B, Q, d_model) and attention weights (B, h, Q, K). Raises ValueError for a number or width below 1,
    and for a mask of another shape.
    """

    def build(
        self,
        query_shape: tuple,
        memory_shape: tuple | None = None,
        mask_shape: tuple | None = None,
        memory_mask_shape: tuple | None = None,
    ):
        self.build_projections(query_shape, memory_shape or query_shape)

    def call(self, query, memory, mask=None, memory_mask=None, bias=None, rotation=None):
        keys = self.split_heads(self.key_projection(memory))  # (B, K, width) -> (B, h, K, d_k)
        values = self.split_heads(self.value_projection(memory))
        query = self.split_heads(self.query_projection(query))  # (B, Q, d_model) -> (B, h, Q, d_k)
        if rotation is not None:
            query, keys = rotated(query, rotation), rotated(keys, rotation)
        shape = (query.shape[0], self.num_heads, query.shape[2], keys.shape[2])
        mask = both_masks(*(for_every_head(each, shape) for each in (mask, memory_mask)))
        heads, weights = scaled_dot_product_attention(query, keys, values, mask, self.score_factor, bias)
        if bias is None and has_fused_kernel(query, values):
            # the compiler drops the heads above, which nothing uses
            heads = fused_attention(query, keys, values, mask, self.score_factor)
        return self.output_projection(self.concatenate_heads(heads)), weights

    def split_heads(self, states):
        """(B, L, h * width) -> (B, h, L, width)"""
        batch, length, _ = ops.shape(states)
        width = states.shape[-1] // self.num_heads
        return ops.transpose(ops.reshape(states, (batch, length, self.num_heads, width)), (0, 2, 1, 3))

    def concatenate_heads(self, heads):
        """(B, h, L, d_v) -> (B, L, h * d_v)"""
        batch, _, length, _ = ops.shape(heads)
        return ops.reshape(ops.transpose(heads, (0, 2, 1, 3)), (batch, length, self.num_heads * self.value_dim))

    def compute_output_shape(
        self,
        query_shape: tuple,
        memory_shape: tuple | None = None,
        mask_shape: tuple | None = None,
        memory_mask_shape: tuple | None = None,
    ) -> tuple:
        batch, queries, _ = query_shape
        keys = (memory_shape or query_shape)[1]
        return query_shape, (batch, self.num_heads, queries, keys)


def for_every_head(mask, shape: tuple[int | None, ...]):
    """(B, Q, K) -> (B, 1, Q, K), and (B, K) -> (B, 1, 1, K); None stays None, and so does a mask of four axes.

    shape: (B, h, Q, K), None where it is not known. Raises ValueError for a mask that does not fit it, and warns of one
    that could also be (Q, K).
    """
    if mask is None:
        return None
    given = tuple(mask.shape)
    if len(given) == 2:
        batch, _, queries, _ = shape
        if batch == queries != 1 and given[0] == batch:
            warnings.warn(f"The mask {given} is taken for (B, K), not for (Q, K), which mask[None] is.", stacklevel=2)
        mask = ops.expand_dims(mask, 1)
    if len(given) in (2, 3):
        mask = ops.expand_dims(mask, 1)
    sizes = zip(mask.shape, shape, strict=False)
    if len(mask.shape) != 4 or any(None not in (size, fits) and size not in (1, fits) for size, fits in sizes):
        raise ValueError(
            f"A mask must be (B, Q, K), (B, K) or (B, h, Q, K), and (B, h, Q, K) is {shape} here. Received: a mask of "
            f"shape {given}. If it is (Q, K), give mask[None]."
        )
    return mask


def both_masks(mask, other):
    """True if both masks are; None allows everything."""
    if mask is None or other is None:
        return other if mask is None else mask
    return ops.logical_and(mask, other)
