"""The recurrent decoder: one step as a function of (state, token), and all steps of training in one loop."""

import operator
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_transformer.layers.cells import CELLS
from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.loop import scan
from keras_transformer.masks import first_in_segment, segment_mask
from keras_transformer.recurrent.attention import AdditiveAttention, Attention, DotAttention, GeneralAttention
from keras_transformer.recurrent.config import ATTENTIONS


class RecurrentState(NamedTuple):
    """What the decoder knows before a step, for N hypotheses."""

    layers: list  # per layer, the parts of its cell's state, each (N, units)
    read: Any  # (N, units): the attentional state (the output of the last layer without attention)
    distribution: Any  # (N, S): what the last step attended to


class Memory(NamedTuple):
    """What the decoder attends to, for B sentences."""

    keys: Any  # (B, S, units), of `Attention.keys`
    values: Any  # (B, S, units): the encoder's output
    mask: Any  # bool (B, 1, S): True at the tokens of the sentence


def in_layers(parts: list, parts_per_layer: int) -> list[list]:
    """Group the parts of the states of all layers by layer: [h, m, h, m] -> [[h, m], [h, m]] for two LSTMs."""
    return [parts[number : number + parts_per_layer] for number in range(0, len(parts), parts_per_layer)]


def in_a_row(layers: list[list]) -> list:
    """The inverse of `in_layers`."""
    return [part for layer in layers for part in layer]


def attention_layer(kind: str, units: int, parts: dict) -> Attention | None:
    """Return the layer of one of ATTENTIONS, with these arguments of all parts; None for "none"."""
    if kind == "none":
        return None
    if kind == "additive":
        return AdditiveAttention(units, name="attention", **parts)
    return {"dot": DotAttention, "general": GeneralAttention}[kind](name="attention", **parts)


@keras.saving.register_keras_serializable("keras_transformer")
class RecurrentDecoder(CompositeLayer):
    """Recurrent layers on top of each other, and attention to the source from the last of them.

    Attention "dot" and "general" (Luong et al. 2015) come after the recurrent layers, in five steps:

        score               e_t = [s_t . h_1, ..., s_t . h_S]
        distribution        alpha_t = softmax(e_t)
        context             a_t = sum_i alpha_ti h_i
        concatenation       [a_t ; s_t]
        attentional state   r_t = tanh(W_c [a_t ; s_t] + b_c)

    The output layer reads r_t. With input feeding, r_{t-1} is part of the input of the first layer. Attention
    "additive" (Bahdanau et al. 2015) comes before the recurrent layers: s_{t-1} scores, and a_t is part of the input;
    r_t is as above. With attention "none" (Sutskever et al. 2014) the output layer reads s_t.

    Args:
        units: width of everything: embeddings, states, the encoder's output.
        cell: "gru" or "lstm".
        layers: number of recurrent layers.
        attention: "dot", "general", "additive" or "none".
        input_feeding: of attention "dot" and "general".
        dropout: of what one recurrent layer hands to the next one.

    Shapes: embedded (B, T, units), target_segments int (B, T), memory (B, S, units), source_segments int (B, S), and
    `first`, a list of (B, T, units) per layer and part of its state: with what a segment begins, at its positions.
    Returns the r_t (B, T, units) and the distributions (B, 1, T, S), all 0 without attention.
    Raises ValueError for another cell or attention.
    """

    def __init__(
        self,
        units: int,
        cell: str = "gru",
        layers: int = 1,
        attention: str = "dot",
        input_feeding: bool = True,
        dropout: float = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        for name, value, allowed in (("cell", cell, tuple(CELLS)), ("attention", attention, ATTENTIONS)):
            if value not in allowed:
                raise ValueError(f"{name} must be one of {allowed}. Received: {name}={value!r}")
        self.units, self.cell, self.layers = operator.index(units), cell, operator.index(layers)
        self.attention_kind, self.input_feeding, self.dropout_rate = attention, input_feeding, dropout
        parts = self.for_parts()
        self.cells = [CELLS[cell](self.units, name=f"layer_{number + 1}", **parts) for number in range(self.layers)]
        self.attention = attention_layer(attention, self.units, parts)
        is_fed = attention == "additive" or (attention != "none" and input_feeding)
        columns = self.cells[0].gates * self.units
        self.feed = keras.layers.Dense(columns, use_bias=False, name="feed", **parts) if is_fed else None
        self.concatenated = (
            None if attention == "none" else keras.layers.Dense(self.units, "tanh", name="attentional_state", **parts)
        )
        self.dropouts = [Dropout(dropout, **parts) for _ in self.cells[1:]]  # one stream of masks each

    def build(
        self,
        embedded_shape: tuple,
        target_segments_shape: tuple | None = None,
        memory_shape: tuple | None = None,
        source_segments_shape: tuple | None = None,
        first_shape: list[tuple] | None = None,
    ):
        for cell in self.cells:
            cell.build(embedded_shape)
        if self.attention is not None:
            self.attention.build((*embedded_shape[:-1], self.units), (*embedded_shape[:-1], self.units))
        if self.concatenated is not None:
            self.concatenated.build((None, 2 * self.units))
        if self.feed is not None:
            self.feed.build((None, self.units))

    def keys(self, memory):
        """The keys of a Memory, computed once per sentence: (B, S, units) -> (B, S, units)"""
        return memory if self.attention is None else self.attention.keys(memory)

    def step(self, state: RecurrentState, projected, memory: Memory, scales=()) -> RecurrentState:
        """Return the state one token later. Row b * K + k of the state is hypothesis k of sentence b of the memory.

        projected (N, gates * units): the embedded token, times the kernel of the first cell.
        scales: for every layer but the first, what its input is multiplied by (dropout); () is nothing.
        """
        if self.attention is None:
            layers = self.recur(state.layers, projected, scales)
            return RecurrentState(layers, layers[-1][0], state.distribution)
        if self.attention_kind == "additive" and self.feed is not None:
            context, distribution = self.attend(self.attention, state.layers[-1][0], memory)
            layers = self.recur(state.layers, projected + self.feed(context), scales)
            return RecurrentState(layers, self.attentional_state(context, layers[-1][0]), distribution)
        if self.feed is not None:
            projected = projected + self.feed(state.read)
        layers = self.recur(state.layers, projected, scales)
        context, distribution = self.attend(self.attention, layers[-1][0], memory)
        return RecurrentState(layers, self.attentional_state(context, layers[-1][0]), distribution)

    def recur(self, layers: list, projected, scales) -> list:
        """Run the recurrent layers. Returns the parts of the state of each."""
        states = [self.cells[0].step(layers[0], projected)]
        for number, (cell, state) in enumerate(zip(self.cells[1:], layers[1:], strict=True)):
            below = states[-1][0] * scales[number] if scales else states[-1][0]
            states.append(cell.step(state, cell.project(below)))
        return states

    def attend(self, attention: Attention, hidden, memory: Memory) -> tuple:
        """Score, distribution and context: hidden (N, units) -> contexts (N, units), distributions (N, S)"""
        sentences, length, _ = ops.shape(memory.values)
        hypotheses = 1 if hidden.shape[0] == 0 else -1  # of an empty batch, JAX and PyTorch cannot tell how many
        query = ops.reshape(hidden, (sentences, hypotheses, self.units))  # (B, K, units)
        context, distribution = attention.attend(query, memory.keys, memory.values, memory.mask)
        return ops.reshape(context, (-1, self.units)), ops.reshape(distribution, (-1, length))

    def attentional_state(self, context, hidden):
        """Concatenation and attentional state: (N, units), (N, units) -> (N, units)"""
        return self.concatenated(ops.concatenate([context, hidden], axis=-1))

    def call(self, embedded, target_segments, memory, source_segments, first: list, training: bool = False):
        projected = self.cells[0].project(embedded)  # of all positions: one matrix product
        begins = ops.expand_dims(first_in_segment(target_segments), 2)  # (B, T, 1)
        mask = segment_mask(target_segments, source_segments)  # (B, T, S)
        keys, count = self.keys(memory), len(first)

        def one_position(state, values):
            projected, begins, mask, *others = values
            first, scales = others[:count], others[count:]
            *parts, read, distribution = state
            parts = [ops.where(begins, new, old) for new, old in zip(first, parts, strict=True)]
            read = ops.where(begins, ops.zeros_like(read), read)
            before = RecurrentState(in_layers(parts, self.cells[0].parts), read, distribution)
            after = self.step(before, projected, Memory(keys, memory, ops.expand_dims(mask, 1)), scales)
            return [*in_a_row(after.layers), after.read, after.distribution]

        sentences, length, _ = ops.shape(memory)
        nothing = ops.zeros((sentences, self.units), projected.dtype)
        start = [nothing] * (count + 1) + [ops.zeros((sentences, length), projected.dtype)]
        inputs = [projected, begins, mask, *first, *self.dropout_scales(embedded, training)]
        read, distributions = scan(one_position, start, inputs, collected=(count, count + 1))
        return read, ops.expand_dims(distributions, 1)

    def dropout_scales(self, embedded, training: bool) -> list:
        """Return what the input of every layer but the first is multiplied by, (B, T, units), drawn before the loop."""
        if not (training and self.dropout_rate):
            return []
        return [dropout(ops.ones_like(embedded), training=True) for dropout in self.dropouts]

    def compute_output_shape(
        self,
        embedded_shape: tuple,
        target_segments_shape: tuple,
        memory_shape: tuple,
        source_segments_shape: tuple | None = None,
        first_shape: list[tuple] | None = None,
    ) -> tuple:
        batch, length, _ = embedded_shape
        return (batch, length, self.units), (batch, 1, length, memory_shape[1])

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "units": self.units,
            "cell": self.cell,
            "layers": self.layers,
            "attention": self.attention_kind,
            "input_feeding": self.input_feeding,
            "dropout": self.dropout_rate,
        }
