"""How a recurrent decoder attends: dot-product, general and additive scores (Luong et al. 2015, Bahdanau et al. 2015).

The score e_i says how well position i of the encoder's output h answers the decoder's state s. What follows is the same
for all three: alpha = softmax(e) is the distribution, and the context is sum_i alpha_i h_i.
"""

import operator

import keras
from keras import ops

from keras_transformer.layers.attention import masked_softmax
from keras_transformer.layers.plain import PlainLayer


class Attention(PlainLayer):
    """Attention with one head, without a projection of what is averaged.

    Shapes: query (B, Q, d), memory (B, S, d), mask bool (B, Q, S), True means "may attend".
    Returns the context (B, Q, d) and the distribution (B, Q, S). The rows of the distribution sum to 1; that of a query
    that may attend to nothing is 0, as is its context.
    """

    def build(self, query_shape: tuple, memory_shape: tuple | None = None, mask_shape: tuple | None = None):
        """Create the weights of the score; "dot" has none."""

    def call(self, query, memory, mask=None):
        return self.attend(query, self.keys(memory), memory, mask)

    def attend(self, query, keys, memory, mask=None):
        """What `call` returns, with the keys of `keys(memory)`, which do not change from step to step."""
        scores = self.scores(query, keys)
        distribution = ops.cast(masked_softmax(scores, mask), memory.dtype)
        return ops.matmul(distribution, memory), distribution

    def keys(self, memory):
        """The part of the score that is the same for every query: (B, S, d) -> (B, S, d)"""
        return memory

    def in_compute_dtype(self, weight):
        return ops.cast(ops.convert_to_tensor(weight), self.compute_dtype)

    def compute_output_shape(self, query_shape: tuple, memory_shape: tuple, mask_shape: tuple | None = None) -> tuple:
        return (*query_shape[:-1], memory_shape[-1]), (*query_shape[:-1], memory_shape[1])


@keras.saving.register_keras_serializable("keras_transformer")
class DotAttention(Attention):
    """e_i = s . h_i (Luong et al. 2015, section 3.1, "dot"); s and h have the same width."""

    def scores(self, query, keys):
        """(B, Q, d), (B, S, d) -> (B, Q, S)"""
        return ops.matmul(query, ops.swapaxes(keys, 1, 2))


@keras.saving.register_keras_serializable("keras_transformer")
class GeneralAttention(DotAttention):
    """e_i = s^T W h_i (Luong et al. 2015, section 3.1, "general")."""

    def build(self, query_shape: tuple, memory_shape: tuple | None = None, mask_shape: tuple | None = None):
        shape = (query_shape[-1], (memory_shape or query_shape)[-1])
        self.w = self.add_weight(name="w", shape=shape, initializer="glorot_uniform")

    def keys(self, memory):
        """W h_i"""
        return ops.matmul(memory, ops.transpose(self.in_compute_dtype(self.w)))


@keras.saving.register_keras_serializable("keras_transformer")
class AdditiveAttention(Attention):
    """e_i = v^T tanh(W_1 s + W_2 h_i) (Bahdanau et al. 2015, section A.1.2).

    Args:
        units: length of v.
    """

    def __init__(self, units: int, **kwargs):
        super().__init__(**kwargs)
        self.units = operator.index(units)

    def build(self, query_shape: tuple, memory_shape: tuple | None = None, mask_shape: tuple | None = None):
        widths = {"w_1": query_shape[-1], "w_2": (memory_shape or query_shape)[-1]}
        self.w_1, self.w_2 = (
            self.add_weight(name=name, shape=(width, self.units), initializer="glorot_uniform")
            for name, width in widths.items()
        )
        self.v = self.add_weight(name="v", shape=(self.units, 1), initializer="glorot_uniform")

    def keys(self, memory):
        """W_2 h_i"""
        return ops.matmul(memory, self.in_compute_dtype(self.w_2))

    def scores(self, query, keys):
        """(B, Q, d), (B, S, units) -> (B, Q, S)"""
        query = ops.matmul(query, self.in_compute_dtype(self.w_1))
        hidden = ops.tanh(ops.expand_dims(query, 2) + ops.expand_dims(keys, 1))  # (B, Q, S, units)
        return ops.matmul(hidden, self.in_compute_dtype(self.v))[..., 0]

    def get_config(self) -> dict:
        return {**super().get_config(), "units": self.units}
