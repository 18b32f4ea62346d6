"""Restricted self-attention: each position attends to r positions around it (Vaswani et al. 2017, section 4)."""

import keras
from keras import ops

from keras_transformer.layers.attention import AttentionHeads, masked_softmax
from keras_transformer.masks import check_neighbourhood, hide_padding


def in_blocks(positions, size: int):
    """Cut positions into blocks, the last of them filled up with zeros.

    Shapes: (B, L, ...) -> (B, blocks, size, ...).
    """
    batch, length, *rest = ops.shape(positions)
    missing = ops.zeros((batch, -length % size, *rest), positions.dtype)
    return ops.reshape(ops.concatenate([positions, missing], axis=1), (batch, -(-length // size), size, *rest))


def with_margins(blocks, margin: int):
    """Put before each block the last positions of the block before it, and after it the first of the next one.

    Shapes: (B, blocks, size, ...) -> (B, blocks, margin + size + margin, ...).
    """
    nothing, size = ops.zeros_like(blocks[:, :1]), blocks.shape[2]
    before = ops.concatenate([nothing, blocks[:, :-1]], axis=1)[:, :, size - margin :]
    after = ops.concatenate([blocks[:, 1:], nothing], axis=1)[:, :, :margin]
    return ops.concatenate([before, blocks, after], axis=2)


def banded_attention(query, key, value, segments, neighbourhood: int, factor: float | None = None):
    """Scaled dot-product attention under `masks.neighbourhood_mask`, computed in n * r steps instead of n * n.

    Queries are cut into blocks of r positions. All queries of a block share one window of keys, which reaches
    (r - 1) / 2 positions beyond the block on each side. So a query is multiplied with 2 r - 1 keys, whatever n is, and
    a mask leaves the r around it that are of its own segment. `factor` is that of `scaled_dot_product_attention`.

    Shapes, with n positions and r = neighbourhood:
        query and key (B, n, H, d_k)   value (B, n, H, d_v)   segments int (B, n), 0 is padding

    Returns output (B, n, H, d_v), and weights (B, blocks, H, r, 2 r - 1) of each query of a block for its window.
    """
    length, reach = ops.shape(query)[1], (neighbourhood - 1) // 2
    query = query * ops.cast(query.shape[-1] ** -0.5 if factor is None else factor, query.dtype)
    query, query_segments = in_blocks(query, neighbourhood), in_blocks(segments, neighbourhood)
    key, value, key_segments = (with_margins(in_blocks(each, neighbourhood), reach) for each in (key, value, segments))
    scores = ops.einsum("bcqhd,bckhd->bchqk", query, key)
    is_same = ops.equal(ops.expand_dims(query_segments, 3), ops.expand_dims(key_segments, 2))
    is_real = ops.expand_dims(ops.not_equal(key_segments, 0), 2)
    mask = ops.logical_and(ops.logical_and(is_same, is_real), is_near(neighbourhood))  # (B, blocks, r, 2 r - 1)
    weights = ops.cast(masked_softmax(scores, ops.expand_dims(mask, 2)), value.dtype)
    output = ops.einsum("bchqk,bckhd->bcqhd", weights, value)
    batch, blocks, size, *rest = ops.shape(output)
    return ops.reshape(output, (batch, blocks * size, *rest))[:, :length], weights


def is_near(neighbourhood: int):
    """Which keys of its window each query of a block may reach: bool (r, 2 r - 1), query i reaches keys i to i + r - 1.

    Key j of the window lies (r - 1) / 2 positions before position j of the block.
    """
    distance = ops.expand_dims(ops.arange(2 * neighbourhood - 1), 0) - ops.expand_dims(ops.arange(neighbourhood), 1)
    return ops.logical_and(distance >= 0, distance < neighbourhood)


def as_full_weights(weights, length):
    """Put the weights of `banded_attention` into a matrix of all queries and keys, 0 elsewhere: for pictures.

    Shapes: (B, blocks, H, r, 2 r - 1) -> (B, H, length, length).
    """
    batch, blocks, heads, size, window = ops.shape(weights)
    by_query = ops.transpose(weights, (0, 2, 1, 3, 4))  # (B, H, blocks, r, 2 r - 1)
    by_query = ops.reshape(by_query, (batch, heads, blocks * size, window))[:, :, :length]
    queries, keys = ops.expand_dims(ops.arange(length), 1), ops.expand_dims(ops.arange(length), 0)
    place = keys - queries // size * size + (size - 1) // 2  # of the key in the window of the query's block
    is_inside = ops.logical_and(place >= 0, place < window)
    place = ops.broadcast_to(ops.clip(place, 0, window - 1), (batch, heads, length, length))
    full = ops.take_along_axis(by_query, place, axis=-1)
    return ops.where(is_inside, full, ops.cast(0, full.dtype))


@keras.saving.register_keras_serializable("keras_transformer")
class RestrictedSelfAttention(AttentionHeads):
    """Multi-head self-attention in which each position attends to at most r positions around it, itself included.

    It has the weights of MultiHeadAttention, and computes what that computes under `masks.neighbourhood_mask`. Its
    cost grows with n * r. The returned weights are a matrix of all n * n positions: a graph (tf.function, XLA, Keras'
    fit and predict) computes it only if something uses it; a call outside of a graph always does.

    Args:
        num_heads, key_dim, value_dim, use_bias, scale_scores: see MultiHeadAttention.
        neighbourhood: r, odd, so that as many positions before a position are in it as after it.

    Shapes: states (B, L, d_model), segments int (B, L). Returns output (B, L, d_model) and weights (B, h, L, L).
    Where `states_mask`, bool (B, L), or a mask that Keras carries with `states` is False, there is padding.
    Raises ValueError for an even r and for what MultiHeadAttention refuses.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        neighbourhood: int,
        value_dim: int | None = None,
        use_bias: bool = False,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, value_dim, use_bias, **kwargs)
        check_neighbourhood(neighbourhood)
        self.neighbourhood = neighbourhood

    def build(self, states_shape: tuple, segments_shape: tuple | None = None):
        self.build_projections(states_shape, states_shape)

    def call(self, states, segments, states_mask=None):
        segments = hide_padding(segments, states_mask)
        query, key, value = (
            self.heads_of(projection(states))
            for projection in (self.query_projection, self.key_projection, self.value_projection)
        )
        heads, weights = banded_attention(query, key, value, segments, self.neighbourhood, self.score_factor)
        batch, length, _ = ops.shape(states)
        output = self.output_projection(ops.reshape(heads, (batch, length, self.num_heads * self.value_dim)))
        return output, as_full_weights(weights, length)

    def heads_of(self, states):
        """(B, L, h * width) -> (B, L, h, width)"""
        batch, length, _ = ops.shape(states)
        return ops.reshape(states, (batch, length, self.num_heads, states.shape[-1] // self.num_heads))

    def compute_output_shape(self, states_shape: tuple, segments_shape: tuple | None = None) -> tuple:
        batch, length, _ = states_shape
        return states_shape, (batch, self.num_heads, length, length)

    def get_config(self) -> dict:
        return {**super().get_config(), "neighbourhood": self.neighbourhood}
