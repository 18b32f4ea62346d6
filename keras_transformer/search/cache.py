"""What the blocks of a decoder know of the earlier positions of K hypotheses per sentence.

Self-attention has an entry for each position to attend to, and an SSRU one average of all of them.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_transformer.config import TransformerConfig
from keras_transformer.layers.attention import MASKED_SCORE, at_least_float32
from keras_transformer.layers.blocks import DecoderBlock
from keras_transformer.layers.gather import rows_at
from keras_transformer.layers.positions import POSITIONS, AttentionPositions
from keras_transformer.layers.ssru import SSRUDecoderBlock
from keras_transformer.search.incremental_blocks import (
    Cache,
    JoinedGate,
    JoinedProjection,
    bias_of_mask,
    joined_gate,
    joined_projection,
    step_of_self_attention,
    step_of_ssru,
)
from keras_transformer.search.state import PerSentence, gather_sentences


class Entries(NamedTuple):
    """The past of self-attention.

    Each step of each hypothesis makes one entry: a key and a value per block and head. A search that exchanges its
    hypotheses moves no entries. It only changes which entries belong to the past of which hypothesis.
    """

    caches: PerSentence  # of a Cache per block
    bias: Any  # float32 (B, K, E): 0 if the entry belongs to the past of the hypothesis, MASKED_SCORE if not
    own: PerSentence  # of float32 (B, K, K): the bias of the entries of one position, of which each has its own
    places: Any = ()  # PerSentence of int32 (B, E): the position of each entry, if scores depend on it

    @classmethod
    def before_all(cls, config: TransformerConfig, sentences: Any, hypotheses: int, dtype: Any) -> "Entries":
        """Return the past of the first position: no entries."""

        def no_entries(width: int):
            return ops.zeros((sentences, config.num_heads, 0, width), dtype)

        caches = tuple(Cache(no_entries(config.d_k), no_entries(config.d_v)) for _ in range(config.decoder_layers))
        own = bias_of_mask(ops.expand_dims(ops.eye(hypotheses, dtype="bool"), 0))[:, 0]
        own = ops.broadcast_to(own, (sentences, hypotheses, hypotheses))
        has_places = POSITIONS[config.positions].argument == "bias"
        places = PerSentence(ops.zeros((sentences, 0), "int32")) if has_places else ()
        return cls(PerSentence(caches), ops.zeros((sentences, hypotheses, 0), "float32"), PerSentence(own), places)

    @staticmethod
    def projection_of(block: DecoderBlock) -> JoinedProjection:
        """Return the weights that read the past, in the form that a step needs."""
        return joined_projection(block.self_attention)

    def of_blocks(self) -> tuple[Cache, ...]:
        """Return what each block reads."""
        return self.caches.shared

    def reader(self, position, has_room: bool, positions: keras.layers.Layer) -> tuple["Entries", Callable]:
        """Return this past with one more entry per hypothesis, and the function that computes a block's first sublayer.

        positions: the layer that knows them.

        The function takes a block, its `projection_of`, states (B * K, d_model) and one of `of_blocks`, and returns new
        states and the cache with E' entries. With `has_room`, the entries of `position` int () take their room.
        """
        own, hypotheses = self.own.shared, self.bias.shape[1]
        if has_room:
            bias = ops.slice_update(self.bias, (0, 0, position * hypotheses), own)
        else:
            bias = append(self.bias, own)
        write = functools.partial(write_at, position) if has_room else append
        of_heads, rotation = ops.expand_dims(bias, 1), None  # (B, 1, K, E')
        past = self._replace(bias=bias)
        if isinstance(self.places, PerSentence):
            past = past._replace(places=self.places_with(position, has_room))
            of_heads = of_heads + positions.at_step(position, past.places.shared)
        elif isinstance(positions, AttentionPositions):
            rotation = positions.at_step(position, None)
        return past, functools.partial(step_of_self_attention, write=write, bias=of_heads, rotation=rotation)

    def places_with(self, position, has_room: bool) -> PerSentence:
        """Return the positions of all entries, those of `position` included."""
        places, (sentences, hypotheses) = self.places.shared, ops.shape(self.bias)[:2]
        new = ops.broadcast_to(ops.cast(position, "int32"), (sentences, hypotheses))
        if has_room:
            return PerSentence(ops.slice_update(places, (0, position * hypotheses), new))
        return PerSentence(ops.concatenate([places, new], axis=1))

    def with_blocks(self, caches: Sequence[Cache]) -> "Entries":
        """Return the same past with what the blocks have made of it."""
        return self._replace(caches=PerSentence(tuple(caches)))

    def of_sentences(self, rows) -> "Entries":
        """Return the past of some sentences alone, without entries that belong to no past: rows int32 (any number,).

        Hypotheses share most of their past, so what is left is little more than one entry per position.
        """
        sentences, heads, entries, _ = ops.shape(self.caches.shared[0].keys)
        bias = rows_at(self.bias, rows)
        is_needed = ops.any(bias == 0, axis=1)  # (rows, E)
        left = ops.max(ops.sum(ops.cast(is_needed, "int32"), axis=1), initial=0)
        needed = ops.argsort(ops.cast(is_needed, "int32") * -1, axis=1)[:, :left]  # the needed ones, in their order
        needed = ops.cast(needed, "int32")
        places = ops.expand_dims(rows, 1) * entries + needed  # in (B * E)
        bias = rows_at(ops.reshape(ops.swapaxes(self.bias, 1, 2), (-1, self.bias.shape[1])), places)
        head_places = ops.expand_dims(ops.expand_dims(rows, 1) * heads + ops.expand_dims(ops.arange(heads), 0), 2)
        head_places = head_places * entries + ops.expand_dims(needed, 1)  # in (B * h * E): (rows, h, left)

        def needed_of(array):
            return rows_at(ops.reshape(array, (-1, array.shape[3])), head_places)

        caches = keras.tree.map_structure(needed_of, self.caches)
        of_entries = self.places and PerSentence(rows_at(ops.reshape(self.places.shared, (-1,)), places))
        return Entries(caches, ops.swapaxes(bias, 1, 2), gather_sentences(self.own, rows), of_entries)

    def longer(self, positions: int) -> "Entries":
        """Return the past with room for the entries of `positions` more positions, which belong to no past yet."""
        hypotheses = self.bias.shape[1]
        entries = positions * hypotheses

        def with_room(array):  # (B, h, E, width)
            return ops.pad(array, ((0, 0), (0, 0), (0, entries), (0, 0)))

        bias = ops.pad(self.bias, ((0, 0), (0, 0), (0, entries)), constant_values=MASKED_SCORE)
        of_entries = self.places and PerSentence(ops.pad(self.places.shared, ((0, 0), (0, entries))))
        return self._replace(caches=keras.tree.map_structure(with_room, self.caches), bias=bias, places=of_entries)


def append(entries, new):
    """Add the entries of one position: (B, h, E, width), (B, h, K, width) -> (B, h, E + K, width).

    Of a bias it is (B, K, E), (B, K, K) -> (B, K, E + K).
    """
    return ops.concatenate([entries, new], axis=2)


def write_at(position, entries, new):
    """Put the entries of one position into the room for them: (B, h, E, width), (B, h, K, width) -> (B, h, E, width).

    It is an XLA operation, of which a served graph must have none; a search of changing shapes uses `append`.
    """
    return ops.slice_update(entries, (0, 0, position * new.shape[2], 0), new)


class Averages(NamedTuple):
    """The past of SSRUs: one vector per block and hypothesis, however long the hypothesis is.

    It has the methods of Entries. The vectors of all blocks are one array: hypotheses change places in one pass.
    """

    averages: Any  # (B, K, blocks, d_model), in the precision of float32 at least

    @classmethod
    def before_all(cls, config: TransformerConfig, sentences: Any, hypotheses: int, dtype: Any) -> "Averages":
        """Return the past of the first position: averages of nothing."""
        nothing = ops.zeros((sentences, hypotheses, config.decoder_layers, config.d_model), dtype)
        return cls(at_least_float32(nothing))

    @staticmethod
    def projection_of(block: SSRUDecoderBlock) -> JoinedGate:
        """Return the weights of a step, in the form that it needs."""
        return joined_gate(block.ssru)

    def of_blocks(self) -> list:
        """Return the averages of each block, (B * K, d_model)."""
        return ops.unstack(ops.reshape(self.averages, (-1, *self.averages.shape[2:])), axis=1)

    def reader(self, position, has_room: bool, positions: keras.layers.Layer) -> tuple["Averages", Callable]:
        """See Entries. Averages need no room."""
        return self, step_of_ssru

    def with_blocks(self, averages: Sequence) -> "Averages":
        """Return the averages of all blocks as one past."""
        return Averages(ops.reshape(ops.stack(averages, axis=1), (-1, *self.averages.shape[1:])))


PASTS: dict[str, type[Entries | Averages]] = {"self_attention": Entries, "ssru": Averages}  # by `decoder_layer`
