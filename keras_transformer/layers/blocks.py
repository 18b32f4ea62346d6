"""Residual connections and the two kinds of block (Vaswani et al. 2017, section 3.1 and figure 1)."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.feed_forward import FeedForward


class Residual(keras.layers.Layer):
    """The wrapper of a sublayer: what goes in, and what its output becomes.

    `enter(states)` is the sublayer's input, `leave(states, output)` the wrapped result; both (B, L, d_model).
    Dropout is applied to the output of the sublayer, before the sum (section 5.4).
    """

    def __init__(self, dropout=0.0, epsilon=1e-6, **kwargs):
        super().__init__(**kwargs)
        self.dropout_rate, self.epsilon = dropout, epsilon
        self.norm = keras.layers.LayerNormalization(epsilon=epsilon, dtype=self.dtype_policy, name="norm")
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)

    def build(self, input_shape):
        self.norm.build(input_shape)

    def get_config(self):
        return {**super().get_config(), "dropout": self.dropout_rate, "epsilon": self.epsilon}


@keras.saving.register_keras_serializable("keras_transformer")
class PostNormResidual(Residual):
    """LayerNorm(x + Dropout(Sublayer(x))), the paper's (section 3.1)."""

    def enter(self, states):
        return states

    def leave(self, states, output):
        return self.norm(states + self.dropout(output))


@keras.saving.register_keras_serializable("keras_transformer")
class PreNormResidual(Residual):
    """x + Dropout(Sublayer(LayerNorm(x))) (Xiong et al. 2020): trains without warm-up, wants a last LayerNorm."""

    def enter(self, states):
        return self.norm(states)

    def leave(self, states, output):
        return states + self.dropout(output)


RESIDUALS = {"post": PostNormResidual, "pre": PreNormResidual}


class Block(keras.layers.Layer):
    """What both blocks share: their arguments, their sublayers, and the feed-forward network at their end.

    Args:
        num_heads, key_dim, value_dim, attention_bias: of every attention (see MultiHeadAttention).
        d_ff, activation: of the feed-forward network.
        dropout: P_drop, on the output of every sublayer.
        norm: "post" or "pre", where the LayerNorm stands.
        norm_epsilon: added to the variance.
    """

    def __init__(
        self, num_heads, key_dim, d_ff, value_dim=None, activation="relu", dropout=0.0, norm="post",
        norm_epsilon=1e-6, attention_bias=False, **kwargs,
    ):  # fmt: skip
        super().__init__(**kwargs)
        if norm not in RESIDUALS:
            raise ValueError(f"norm must be one of {tuple(RESIDUALS)}. Received: norm={norm!r}")
        self.arguments = {
            "num_heads": num_heads, "key_dim": key_dim, "d_ff": d_ff, "value_dim": value_dim,
            "activation": activation, "dropout": dropout, "norm": norm, "norm_epsilon": norm_epsilon,
            "attention_bias": attention_bias,
        }  # fmt: skip
        self.feed_forward = FeedForward(d_ff, activation, dtype=self.dtype_policy, name="feed_forward")
        self.feed_forward_residual = self._residual("feed_forward_residual")

    def _attention(self, name):
        chosen = self.arguments
        return MultiHeadAttention(
            chosen["num_heads"], chosen["key_dim"], chosen["value_dim"], chosen["attention_bias"],
            dtype=self.dtype_policy, name=name,
        )  # fmt: skip

    def _residual(self, name):
        chosen = self.arguments
        return RESIDUALS[chosen["norm"]](chosen["dropout"], chosen["norm_epsilon"], dtype=self.dtype_policy, name=name)

    def feed(self, states):
        """The feed-forward sublayer. (B, L, d_model) -> (B, L, d_model)"""
        output = self.feed_forward(self.feed_forward_residual.enter(states))
        return self.feed_forward_residual.leave(states, output)

    def get_config(self):
        return {**super().get_config(), **self.arguments}


@keras.saving.register_keras_serializable("keras_transformer")
class EncoderBlock(Block):
    """Self-attention, then the feed-forward network (figure 1, left). Arguments: see Block.

    Shapes: states (B, L, d_model), mask bool (B, L, L).
    Returns states (B, L, d_model) and attention weights (B, H, L, L).
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.self_attention = self._attention("self_attention")
        self.self_attention_residual = self._residual("self_attention_residual")

    def build(self, states_shape, mask_shape=None):
        self.self_attention.build(states_shape, states_shape)
        for layer in (self.feed_forward, self.self_attention_residual, self.feed_forward_residual):
            layer.build(states_shape)

    def call(self, states, mask=None):
        query = self.self_attention_residual.enter(states)
        attended, weights = self.self_attention(query, query, mask)
        return self.feed(self.self_attention_residual.leave(states, attended)), weights

    def compute_output_shape(self, states_shape, mask_shape=None):
        return states_shape, self.self_attention.compute_output_shape(states_shape)[1]


class ProjectedMemory(NamedTuple):
    """What a decoder block attends to in the encoder's output, computed once a sentence."""

    keys: Any  # (B, H, S, d_k)
    values: Any  # (B, H, S, d_v)
    mask: Any  # bool (B, 1, S): True at real source positions


@keras.saving.register_keras_serializable("keras_transformer")
class DecoderBlock(Block):
    """Causal self-attention, attention to the encoder's output, feed-forward (figure 1, right). Arguments: see Block.

    Shapes: states (B, T, d_model), memory (B, S, d_model), self_mask bool (B, T, T), memory_mask bool (B, T, S).
    Returns states (B, T, d_model), self-attention weights (B, H, T, T) and encoder-decoder weights (B, H, T, S).
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.self_attention = self._attention("self_attention")
        self.self_attention_residual = self._residual("self_attention_residual")
        self.memory_attention = self._attention("memory_attention")
        self.memory_attention_residual = self._residual("memory_attention_residual")

    def build(self, states_shape, memory_shape=None, self_mask_shape=None, memory_mask_shape=None):
        self.self_attention.build(states_shape, states_shape)
        self.memory_attention.build(states_shape, memory_shape or states_shape)
        residuals = (self.self_attention_residual, self.memory_attention_residual, self.feed_forward_residual)
        for layer in (self.feed_forward, *residuals):
            layer.build(states_shape)

    def call(self, states, memory, self_mask=None, memory_mask=None):
        query = self.self_attention_residual.enter(states)
        attended, self_weights = self.self_attention(query, query, self_mask)
        states = self.self_attention_residual.leave(states, attended)
        states, memory_weights = self.attend_to_memory(
            states, *self.memory_attention.project_memory(memory), memory_mask
        )
        return self.feed(states), self_weights, memory_weights

    def attend_to_memory(self, states, memory_keys, memory_values, memory_mask):
        """The encoder-decoder sublayer over keys and values that `memory_attention.project_memory` made."""
        query = self.memory_attention_residual.enter(states)
        attended, weights = self.memory_attention.attend(query, memory_keys, memory_values, memory_mask)
        return self.memory_attention_residual.leave(states, attended), weights

    def step(self, states, position, keys, values, memory):
        """One position of `call`, for one hypothesis in each of N = B * K rows (K hypotheses a sentence).

        Shapes: states (N, 1, d_model); position () int; keys (N, H, L, d_k) and values (N, H, L, d_v), filled before
        `position`; memory, a ProjectedMemory: keys (B, H, S, d_k), values (B, H, S, d_v), mask bool (B, 1, S).
        Returns states (N, 1, d_model), and keys and values filled up to and with `position`.
        """
        query = self.self_attention_residual.enter(states)
        new_keys, new_values = self.self_attention.project_memory(query)  # (N, H, 1, d)
        places = ops.reshape(ops.arange(ops.shape(keys)[2]), (1, 1, -1, 1))
        keys = ops.where(places == position, new_keys, keys)  # no slice update: served graphs must do without XLA's
        values = ops.where(places == position, new_values, values)
        is_past = ops.reshape(places <= position, (1, 1, -1))
        attended, _ = self.self_attention.attend(query, keys, values, is_past)
        states = self.self_attention_residual.leave(states, attended)
        rows, _, width = ops.shape(states)
        sentences = ops.shape(memory.keys)[0]
        states = ops.reshape(states, (sentences, -1, width))  # hypotheses of a sentence are queries to one memory
        states, _ = self.attend_to_memory(states, *memory)
        return self.feed(ops.reshape(states, (rows, 1, width))), keys, values

    def compute_output_shape(self, states_shape, memory_shape, self_mask_shape=None, memory_mask_shape=None):
        self_weights = self.self_attention.compute_output_shape(states_shape)[1]
        memory_weights = self.memory_attention.compute_output_shape(states_shape, memory_shape)[1]
        return states_shape, self_weights, memory_weights
