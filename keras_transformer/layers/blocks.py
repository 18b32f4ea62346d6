"""The two kinds of block (Vaswani et al. 2017, section 3.1 and figure 1)."""

import dataclasses
from typing import Any

import keras
from keras import ops

from keras_transformer.config import TransformerConfig
from keras_transformer.layers.attention import MultiHeadAttention, for_every_head
from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.normalization import NORM_KINDS, NORMS, Residual
from keras_transformer.masks import causal_mask, mask_of


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlockConfig:
    """What decides the parts that every kind of block has. The names are those of TransformerConfig."""

    d_ff: int  # width of the feed-forward network's inner layer
    activation: str = "relu"  # of the feed-forward network, see FeedForward
    feed_forward_bias: bool = True
    dropout: float = 0.0  # P_drop, on the output of every sublayer
    norm: str = "post"  # one of NORMS
    norm_kind: str = "layer"  # one of NORM_KINDS
    norm_epsilon: float = 1e-6

    @classmethod
    def names(cls) -> set[str]:
        """Return the names of the fields."""
        return {field.name for field in dataclasses.fields(cls)}

    @classmethod
    def values_of(cls, config: TransformerConfig) -> dict[str, Any]:
        """Return what the fields have in the blocks of a Transformer."""
        widths = {"key_dim": config.d_k, "value_dim": config.d_v}
        return {name: widths.get(name, getattr(config, name)) for name in cls.names()}


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttentionBlockConfig(BlockConfig):
    """That of a block with attention."""

    num_heads: int  # h
    key_dim: int  # d_k
    value_dim: int | None = None  # d_v; None: d_k
    attention_bias: bool = False
    scale_scores: bool = True


class Block(CompositeLayer):
    """What every kind of block ends with: the feed-forward network and its residual.

    Its keyword arguments are the fields of its configuration, and those of a layer. See EncoderBlock.
    """

    config_class: type[BlockConfig] = BlockConfig

    def __init__(self, **kwargs):
        fields = {name: kwargs.pop(name) for name in self.config_class.names() & kwargs.keys()}
        super().__init__(**kwargs)
        self.config = self.config_class(**fields)
        for name, table in (("norm", NORMS), ("norm_kind", NORM_KINDS)):
            if (value := getattr(self.config, name)) not in table:
                raise ValueError(f"{name} must be one of {tuple(table)}. Received: {name}={value!r}")
        network = self.config.d_ff, self.config.activation, self.config.feed_forward_bias
        self.feed_forward = FeedForward(*network, name="feed_forward", **self.for_parts())
        self.feed_forward_residual = self._residual("feed_forward_residual")

    def _residual(self, name: str) -> Residual:
        config = self.config
        residual = NORMS[config.norm]
        return residual(config.dropout, config.norm_epsilon, config.norm_kind, name=name, **self.for_parts())

    def feed(self, states):
        """The feed-forward sublayer. (B, L, d_model) -> (B, L, d_model)"""
        output = self.feed_forward(self.feed_forward_residual.sublayer_input(states))
        return self.feed_forward_residual.add_and_norm(states, output)

    def compute_mask(self, states, previous_mask=None):
        """Return the mask of real positions (B, L) that stays with the states; a mask (B, Q, K) does not."""
        is_of_positions = previous_mask is not None and len(previous_mask.shape) == 2
        return previous_mask if is_of_positions else mask_of(states)

    def get_config(self) -> dict:
        return {**super().get_config(), **dataclasses.asdict(self.config)}


class AttentionBlock(Block):
    """What the two blocks of figure 1 have besides: an attention sublayer for each name in `attentions`.

    It has `self_attention` with `self_attention_residual` around it, and in the decoder `memory_attention` likewise.
    Its other keyword arguments are those of Block.
    """

    attentions: tuple[str, ...] = ("self_attention",)
    config_class = AttentionBlockConfig
    config: AttentionBlockConfig

    def __init__(self, num_heads: int, key_dim: int, d_ff: int, value_dim: int | None = None, **kwargs):
        super().__init__(num_heads=num_heads, key_dim=key_dim, d_ff=d_ff, value_dim=value_dim, **kwargs)
        for attention in self.attentions:
            options = {"use_bias": self.config.attention_bias, "scale_scores": self.config.scale_scores}
            layer = MultiHeadAttention(num_heads, key_dim, value_dim, **options, name=attention, **self.for_parts())
            setattr(self, attention, layer)
            setattr(self, f"{attention}_residual", self._residual(f"{attention}_residual"))


@keras.saving.register_keras_serializable("keras_transformer")
class EncoderBlock(AttentionBlock):
    """Self-attention, then the feed-forward network (figure 1, left).

    Args:
        num_heads, key_dim, value_dim: h, d_k and d_v of every attention; `value_dim` None means `key_dim`.
        d_ff: width of the feed-forward network's inner layer.
        activation: of the feed-forward network, see FeedForward.
        feed_forward_bias: add biases to it, unless it is gated.
        dropout: P_drop, on the output of every sublayer.
        norm: "post" for a norm after each residual sum, "pre" for one before each sublayer.
        norm_kind: "layer" for LayerNorm, "rms" for RMSNorm.
        norm_epsilon: added to the variance in LayerNorm, to the mean square in RMSNorm.
        attention_bias: add a bias to each projection of attention.
        scale_scores: divide scores by sqrt(d_k), see MultiHeadAttention.

    Shapes: states (B, L, d_model); mask bool (B, L, L), (1, L, L), (B, L) or (B, h, L, L), True means "may attend".
    A mask that Keras carries with `states`, as after `keras.layers.Embedding(mask_zero=True)`, hides padding as well,
    and stays with the states. `bias` and `rotation` are those of self-attention, see MultiHeadAttention.
    Returns states (B, L, d_model) and attention weights (B, h, L, L). Raises ValueError for what its parts refuse: a
    norm of another name, a width below 1, a dropout outside of [0, 1).
    """

    def build(self, states_shape: tuple, mask_shape: tuple | None = None):
        self.self_attention.build(states_shape, states_shape)
        self.feed_forward.build(states_shape)
        self.self_attention_residual.build(states_shape)
        self.feed_forward_residual.build(states_shape)

    def call(self, states, mask=None, bias=None, rotation=None):
        query = self.self_attention_residual.sublayer_input(states)
        output, weights = self.self_attention(query, query, mask, bias=bias, rotation=rotation)
        states = self.self_attention_residual.add_and_norm(states, output)
        return self.feed(states), weights

    def compute_output_shape(self, states_shape: tuple, mask_shape: tuple | None = None) -> tuple:
        return self.self_attention.compute_output_shape(states_shape)


class MemoryBlock(AttentionBlock):
    """What every decoder block has after its first sublayer: attention to the encoder's output, and what follows."""

    attentions: tuple[str, ...] = ("memory_attention",)

    def build_rest(self, states_shape: tuple, memory_shape: tuple) -> None:
        """Build all but the first sublayer."""
        self.memory_attention.build(states_shape, memory_shape)
        self.feed_forward.build(states_shape)
        self.memory_attention_residual.build(states_shape)
        self.feed_forward_residual.build(states_shape)

    def read_memory(self, states, memory, memory_mask):
        """The sublayer that attends to the memory (B, S, d_model). Returns states and weights (B, h, T, S)."""
        query = self.memory_attention_residual.sublayer_input(states)
        output, weights = self.memory_attention(query, memory, memory_mask)
        return self.memory_attention_residual.add_and_norm(states, output), weights


@keras.saving.register_keras_serializable("keras_transformer")
class DecoderBlock(MemoryBlock):
    """Causal self-attention, attention to the encoder's output, feed-forward network (figure 1, right).

    Args and errors: those of EncoderBlock.

    Shapes: states (B, T, d_model), memory (B, S, d_model), self_mask bool (B, T, T), (1, T, T) or (B, T), memory_mask
    bool (B, T, S) or (B, S); both may be of each head, as in MultiHeadAttention. Without `self_mask`, a position
    attends to itself and to those before it. A `self_mask` of (B, T) is True at real positions; a position then attends
    only to those of them. Masks that Keras carries with `states` and `memory` hide padding as well; that of `states`
    stays with the states. `bias` and `rotation` are those of self-attention, see MultiHeadAttention.
    Returns states (B, T, d_model), self-attention weights (B, h, T, T) and encoder-decoder weights (B, h, T, S).
    """

    attentions = ("self_attention", "memory_attention")

    def build(
        self,
        states_shape: tuple,
        memory_shape: tuple | None = None,
        self_mask_shape: tuple | None = None,
        memory_mask_shape: tuple | None = None,
    ):
        self.self_attention.build(states_shape, states_shape)
        self.self_attention_residual.build(states_shape)
        self.build_rest(states_shape, memory_shape or states_shape)

    def call(self, states, memory, self_mask=None, memory_mask=None, bias=None, rotation=None):
        if self_mask is None:
            self_mask = causal_mask(ops.shape(states)[1])
        elif len(self_mask.shape) == 2:
            batch, length, _ = states.shape
            self_mask = for_every_head(self_mask, (batch, 1, length, length))
            self_mask = ops.logical_and(self_mask, ops.expand_dims(causal_mask(ops.shape(states)[1]), 1))
        query = self.self_attention_residual.sublayer_input(states)
        output, self_weights = self.self_attention(query, query, self_mask, bias=bias, rotation=rotation)
        states = self.self_attention_residual.add_and_norm(states, output)
        states, memory_weights = self.read_memory(states, memory, memory_mask)
        return self.feed(states), self_weights, memory_weights

    def compute_output_shape(
        self,
        states_shape: tuple,
        memory_shape: tuple,
        self_mask_shape: tuple | None = None,
        memory_mask_shape: tuple | None = None,
    ) -> tuple:
        _, self_weights = self.self_attention.compute_output_shape(states_shape)
        _, memory_weights = self.memory_attention.compute_output_shape(states_shape, memory_shape)
        return states_shape, self_weights, memory_weights
