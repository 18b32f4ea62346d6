"""Scaled dot-product attention and multi-head attention (Vaswani et al. 2017, section 3.2)."""

import keras
from keras import ops

MASKED_SCORE = -1e30  # finite, so that max and exp of a fully masked row are; far below any real score in float32
LARGEST_FLOAT16 = 65504.0


def scaled_dot_product_attention(query, key, value, mask=None):
    """Average `value` by how well each `key` answers each `query` (Vaswani et al. 2017, eq. 1).

        weights = softmax(query @ key^T / sqrt(d_k))        output = weights @ value

    Shapes, with B batch, H heads, Q queries, K keys:
        query (B, H, Q, d_k)   key (B, H, K, d_k)   value (B, H, K, d_v)
        mask  bool, broadcast to (B, H, Q, K); True means "may attend"

    The softmax is computed in float32, or in float64 where the inputs are, whatever the policy. Scores that
    float16 cannot hold become its largest number, not infinity, of which softmax would make NaN.
    Returns output (B, H, Q, d_v) and weights (B, H, Q, K), whose rows sum to 1; a query with nothing to attend
    to has weights and output 0. Where `has_fused_kernel`, the output comes from that kernel, and a compiled graph in
    which nobody reads the weights never makes them.
    """
    d_k = ops.shape(query)[-1]
    query = query * ops.cast(d_k**-0.5, query.dtype)
    scores = ops.matmul(query, ops.swapaxes(key, -1, -2))  # (B, H, Q, K)
    if keras.backend.standardize_dtype(scores.dtype) == "float16":
        scores = ops.clip(scores, -LARGEST_FLOAT16, LARGEST_FLOAT16)
    weights = masked_softmax(ops.cast(scores, keras.backend.result_type(scores.dtype, "float32")), mask)
    weights = ops.cast(weights, value.dtype)
    if has_fused_kernel(query, key, value):
        return fused_attention(query, key, value, mask), weights
    return ops.matmul(weights, value), weights


def has_fused_kernel(query, key, value):
    """Whether the backend attends between such tensors in one kernel, with no scores in memory: decided in tracing.

    That is JAX on a GPU, through cuDNN, in bfloat16; Keras looks at the chip itself, and falls back where it is too
    old. Not in float16: there the mask adds -32,768, which a score can outweigh. Not on a TPU: Keras' kernel takes the
    mask of the first row for all. `keras.config.disable_flash_attention()` says no for everyone.
    """
    if keras.backend.backend() != "jax" or keras.config.is_flash_attention_enabled() is False:
        return False
    import jax

    if jax.default_backend() != "gpu" or keras.backend.standardize_dtype(query.dtype) != "bfloat16":
        return False
    (queries, d_k), (keys, d_v) = query.shape[-2:], value.shape[-2:]
    return d_k == d_v and d_k % 8 == 0 and d_k <= 128 and queries % 2 == 0 and keys % 2 == 0  # cuDNN's conditions


def fused_attention(query, key, value, mask=None):
    """The output of `scaled_dot_product_attention` in one kernel, from queries that are scaled already."""
    query, key, value = (ops.swapaxes(states, 1, 2) for states in (query, key, value))  # (B, L, H, d), as Keras wants
    if mask is not None:
        mask = ops.logical_and(mask, ops.ones((1, 1, query.shape[1], key.shape[1]), "bool"))  # cuDNN does not broadcast
    output = ops.dot_product_attention(query, key, value, mask=mask, scale=1.0)
    output = ops.swapaxes(output, 1, 2)
    if mask is None:
        return output
    # To a query with nothing to attend to the kernel gives the mean of all values, padding's too
    return ops.where(ops.any(mask, axis=-1, keepdims=True), output, ops.cast(0.0, output.dtype))


def masked_softmax(scores, mask=None):
    """Softmax over the last axis among the places where `mask` is True; zeros elsewhere, also in rows without any.

    Shapes: scores (..., K); mask bool, broadcast to scores.
    """
    if mask is None:
        return ops.softmax(scores, axis=-1)
    scores = ops.where(mask, scores, MASKED_SCORE)
    highest = ops.stop_gradient(ops.max(scores, axis=-1, keepdims=True))
    unnormalised = ops.where(mask, ops.exp(scores - highest), 0.0)
    total = ops.sum(unnormalised, axis=-1, keepdims=True)
    return unnormalised / ops.maximum(total, 1e-30)


@keras.saving.register_keras_serializable("keras_transformer")
class MultiHeadAttention(keras.layers.Layer):
    """h attention heads side by side, each in its own projection (section 3.2.2).

        head_i = attention(Q W_i^Q, K W_i^K, V W_i^V)        output = concat(head_1, ..., head_h) W^O

    One layer for the paper's three uses: encoder self-attention (query and memory the same, mask of segments),
    decoder self-attention (the same, causal mask), encoder-decoder attention (memory from the encoder).

    Args:
        num_heads: h.
        key_dim: d_k, width of one head's queries and keys. Need not be d_model / h (Table 3, B).
        value_dim: d_v, width of one head's values; key_dim where None.
        use_bias: add a bias to each projection; the paper has none.
        output_dim: width of the output; that of the query where None.

    Shapes: query (B, Q, query width), memory (B, K, memory width), mask bool (B, Q, K) or (1, Q, K).
    """

    def __init__(self, num_heads, key_dim, value_dim=None, use_bias=False, output_dim=None, **kwargs):
        super().__init__(**kwargs)
        self.num_heads, self.key_dim = num_heads, key_dim
        self.value_dim = key_dim if value_dim is None else value_dim
        for name, size in (("num_heads", num_heads), ("key_dim", key_dim), ("value_dim", self.value_dim)):
            if size < 1:
                raise ValueError(f"{name} must be at least 1. Received: {name}={size}")
        self.use_bias, self.output_dim = use_bias, output_dim

    def build(self, query_shape, memory_shape=None, mask_shape=None):
        memory_shape = memory_shape or query_shape
        self.query_projection = self._projection("query", self.num_heads * self.key_dim, query_shape)
        self.key_projection = self._projection("key", self.num_heads * self.key_dim, memory_shape)
        self.value_projection = self._projection("value", self.num_heads * self.value_dim, memory_shape)
        concatenated_shape = (*query_shape[:-1], self.num_heads * self.value_dim)
        self.output_projection = self._projection("output", self.output_dim or query_shape[-1], concatenated_shape)

    def _projection(self, name, width, input_shape):
        projection = keras.layers.Dense(width, use_bias=self.use_bias, dtype=self.dtype_policy, name=name)
        projection.build(tuple(input_shape))
        return projection

    def call(self, query, memory, mask=None):
        """Returns output (B, Q, output width) and weights (B, H, Q, K)."""
        return self.attend(query, *self.project_memory(memory), mask)

    def project_memory(self, memory):
        """Keys (B, H, K, d_k) and values (B, H, K, d_v) of `memory` (B, K, width): what decoding computes once."""
        return (
            self.split_heads(self.key_projection(memory), self.key_dim),
            self.split_heads(self.value_projection(memory), self.value_dim),
        )

    def attend(self, query, keys, values, mask=None):
        """Attend from `query` (B, Q, width) to projected keys (B, H, K, d_k) and values (B, H, K, d_v)."""
        query = self.split_heads(self.query_projection(query), self.key_dim)
        if mask is not None:
            mask = ops.expand_dims(mask, 1)  # (B, Q, K) -> (B, 1, Q, K), the same for every head
        heads, weights = scaled_dot_product_attention(query, keys, values, mask)
        return self.output_projection(self.concatenate_heads(heads)), weights

    def split_heads(self, states, width):
        """(B, L, H * width) -> (B, H, L, width)"""
        batch, length = ops.shape(states)[:2]
        return ops.transpose(ops.reshape(states, (batch, length, self.num_heads, width)), (0, 2, 1, 3))

    def concatenate_heads(self, heads):
        """(B, H, L, d_v) -> (B, L, H * d_v)"""
        batch, _, length, _ = ops.shape(heads)
        return ops.reshape(ops.transpose(heads, (0, 2, 1, 3)), (batch, length, self.num_heads * self.value_dim))

    def compute_output_shape(self, query_shape, memory_shape=None, mask_shape=None):
        memory_shape = memory_shape or query_shape
        output = (*query_shape[:-1], self.output_dim or query_shape[-1])
        return output, (query_shape[0], self.num_heads, query_shape[1], memory_shape[1])

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "use_bias": self.use_bias,
            "output_dim": self.output_dim,
        }
