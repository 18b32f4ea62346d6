"""The decoder as a function of (state, token) to (logits, state): what every search calls."""

import functools
from typing import Any, NamedTuple

from keras import ops

from keras_transformer.decoding.incremental_attention import (
    Cache,
    JoinedProjection,
    ProjectedMemory,
    bias_of_mask,
    joined_projection,
    project_memory,
    step_of_block,
)
from keras_transformer.decoding.scores import log_coverage
from keras_transformer.decoding.state import select_hypotheses
from keras_transformer.layers.blocks import DecoderBlock
from keras_transformer.masks import segment_mask
from keras_transformer.model import Transformer, encoder, target_layers
from keras_transformer.tokens import PAD


class TransformerState(NamedTuple):
    """What the decoder remembers of K hypotheses per sentence. Every leaf begins with B.

    Each step of each hypothesis makes one entry: a key and a value per block and head. A search that exchanges its
    hypotheses moves no entries. It only changes which entries belong to the past of which hypothesis.
    """

    caches: tuple[Cache, ...]  # one per block
    is_past: Any  # bool (B, K, E): True if the entry belongs to the past of the hypothesis
    memories: tuple[ProjectedMemory, ...]  # one per block
    attended: Any = ()  # one float32 (B, K, S): see `log_coverage`; nothing if no score needs it

    def of_parents(self, parents) -> "TransformerState":
        """Return the state in which hypothesis k continues hypothesis parents[:, k], int32 (B, K)."""
        return self._replace(
            is_past=select_hypotheses(self.is_past, parents),
            attended=tuple(select_hypotheses(sums, parents) for sums in self.attended),
        )

    def of_sentences(self, rows) -> "TransformerState":
        """Return the state of some sentences alone, without entries that belong to no past: rows int32 (any number,).

        Hypotheses share most of their past, so what is left is little more than one entry per position.
        """
        sentences, heads, entries, _ = ops.shape(self.caches[0].keys)
        is_past = ops.take(self.is_past, rows, axis=0)
        is_needed = ops.any(is_past, axis=1)  # (rows, E)
        left = ops.max(ops.sum(ops.cast(is_needed, "int32"), axis=1), initial=0)
        needed = ops.argsort(ops.cast(is_needed, "int32") * -1, axis=1)[:, :left]  # the needed ones, in their order
        needed = ops.cast(needed, "int32")
        places = ops.expand_dims(rows, 1) * entries + needed  # in (B * E)
        is_past = ops.take(ops.reshape(ops.swapaxes(self.is_past, 1, 2), (-1, self.is_past.shape[1])), places, axis=0)
        head_places = ops.expand_dims(ops.expand_dims(rows, 1) * heads + ops.expand_dims(ops.arange(heads), 0), 2)
        head_places = head_places * entries + ops.expand_dims(needed, 1)  # in (B * h * E): (rows, h, left)

        def needed_of(array):
            return ops.take(ops.reshape(array, (-1, array.shape[3])), head_places, axis=0)

        return TransformerState(
            tuple(Cache(*map(needed_of, cache)) for cache in self.caches),
            ops.swapaxes(is_past, 1, 2),
            tuple(ProjectedMemory(*(ops.take(leaf, rows, axis=0) for leaf in memory)) for memory in self.memories),
            tuple(ops.take(sums, rows, axis=0) for sums in self.attended),
        )

    def longer(self, positions: int) -> "TransformerState":
        """Return the state with room for the entries of `positions` more positions, which belong to no past yet."""
        hypotheses = self.is_past.shape[1]
        entries = positions * hypotheses

        def with_room(array):  # (B, h, E, width)
            sentences, heads, _, width = ops.shape(array)
            return ops.concatenate([array, ops.zeros((sentences, heads, entries, width), array.dtype)], axis=2)

        nobody = ops.zeros((ops.shape(self.is_past)[0], hypotheses, entries), dtype="bool")
        return self._replace(
            caches=tuple(Cache(*map(with_room, cache)) for cache in self.caches),
            is_past=ops.concatenate([self.is_past, nobody], axis=2),
        )

    def log_coverage(self):
        """Return the coverage of the source by each hypothesis: float32 (B, K)."""
        return log_coverage(self.attended[0], self.memories[0].bias[:, 0] == 0)


def append(entries, new):
    """Add the entries of one position: (B, h, E, width), (B, h, K, width) -> (B, h, E + K, width)."""
    return ops.concatenate([entries, new], axis=2)


def write_at(position, entries, new):
    """Put the entries of one position into the room for them: (B, h, E, width), (B, h, K, width) -> (B, h, E, width).

    `ops.slice_update` would put an XLA operation into a served graph.
    """
    sentences, heads, places, width = ops.shape(entries)
    hypotheses = new.shape[2]
    by_position = ops.reshape(entries, (sentences, heads, places // hypotheses, hypotheses * width))
    is_here = ops.expand_dims(ops.arange(places // hypotheses) == position, 1)
    new = ops.reshape(new, (sentences, heads, 1, hypotheses * width))
    return ops.reshape(ops.where(is_here, new, by_position), (sentences, heads, places, width))


class StepWeights(NamedTuple):
    """Weights in another form than the layers have them."""

    projections: tuple[JoinedProjection, ...]  # one per block
    vocabulary: Any  # (d_model, vocab_size): few rows times a transposed matrix would take up to 2.5 times as long


class IncrementalDecoder:
    """The decoder of a Transformer, run one position at a time.

    `start(source_ids, hypotheses)` runs the encoder once and returns a TransformerState without entries.
    `step(weights, state, tokens, position)` returns the logits of the next token and the state one position later;
    `weights` is what `step_weights()` returns, computed once per search. The state grows by one entry per
    hypothesis and step. If shapes are static, it must not grow: `longer` makes room first, and `has_room` is True.
    """

    def __init__(self, transformer: Transformer):
        config = transformer.transformer_config
        self.config = config
        self.encoder = encoder(transformer)
        self.embedding, self.logits = target_layers(transformer)
        self.positions = transformer.get_layer("target_positions")
        self.blocks = [transformer.get_layer(f"decoder_block_{n + 1}") for n in range(config.decoder_layers)]
        self.last_norm = transformer.get_layer("decoder_norm") if config.norm == "pre" else None

    def step_weights(self) -> StepWeights:
        """Return weights in the form that is fastest for products of few rows."""
        return StepWeights(
            tuple(joined_projection(block.self_attention) for block in self.blocks), self.logits.transposed()
        )

    def start(self, source_ids, hypotheses: int, counts_attention: bool = False) -> TransformerState:
        """Run the encoder. The state has no entries yet; with `counts_attention` it keeps what `log_coverage` needs.

        Shapes: source_ids int (B, S), PAD after the end of each sentence. If a row has only PAD, the decoder reads 0
        from it, as in training.
        """
        source_ids = ops.convert_to_tensor(source_ids, dtype="int32")
        segments = ops.cast(ops.not_equal(source_ids, PAD), "int32")
        memory = self.encoder({"source_ids": source_ids, "source_segments": segments}, training=False)
        bias = bias_of_mask(segment_mask(ops.ones_like(segments[:, :1]), segments))  # (B, 1, S)
        has_source = ops.reshape(ops.cast(ops.any(segments != 0, axis=1), memory.dtype), (-1, 1, 1, 1))

        def projected(block: DecoderBlock) -> ProjectedMemory:
            keys, values = project_memory(block.memory_attention, memory)
            return ProjectedMemory(keys, values * has_source, bias)

        memories = tuple(map(projected, self.blocks))
        sentences, config = ops.shape(source_ids)[0], self.config

        def no_entries(width: int):
            return ops.zeros((sentences, config.num_heads, 0, width), memory.dtype)

        caches = tuple(Cache(no_entries(config.d_k), no_entries(config.d_v)) for _ in self.blocks)
        no_past = ops.zeros((sentences, hypotheses, 0), "bool")
        attended = (ops.zeros((sentences, hypotheses, ops.shape(source_ids)[1])),) if counts_attention else ()
        return TransformerState(caches, no_past, memories, attended)

    def step(self, weights: StepWeights, state: TransformerState, tokens, position, has_room: bool = False):
        """Feed one token per hypothesis: tokens int (B, K) at `position` int (). Return logits and the new state.

        Shapes: logits float32 (B * K, vocab_size); hypothesis k of sentence b is row b * K + k.
        """
        sentences, hypotheses = ops.shape(state.is_past)[0], state.is_past.shape[1]
        own = ops.expand_dims(ops.eye(hypotheses, dtype="bool"), 0)
        own = ops.broadcast_to(own, (sentences, hypotheses, hypotheses))
        write = functools.partial(write_at, position) if has_room else append
        is_past = write(ops.expand_dims(state.is_past, 3), ops.expand_dims(own, 3))[..., 0]
        bias = bias_of_mask(is_past)  # (B, 1, K, E)
        states = self.positions(self.embedding(ops.reshape(tokens, (-1, 1))), ops.reshape(position, (1, 1)))[:, 0]
        caches = []
        for block, projection, cache, memory in zip(
            self.blocks, weights.projections, state.caches, state.memories, strict=True
        ):
            states, cache, attention = step_of_block(block, projection, states, cache, write, bias, memory)
            caches.append(cache)
        if self.last_norm is not None:
            states = self.last_norm(states)
        logits = ops.cast(self.logits.logits_by(weights.vocabulary, states), "float32")
        of_last_block = attention
        attended = tuple(sums + ops.cast(ops.mean(of_last_block, axis=1), sums.dtype) for sums in state.attended)
        return logits, state._replace(caches=tuple(caches), is_past=is_past, attended=attended)
