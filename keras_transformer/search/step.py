"""The decoder as a function of (state, token) to (logits, state): what every search calls."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from keras import ops

from keras_transformer.ground.tokens import PAD
from keras_transformer.layers.blocks import MemoryBlock
from keras_transformer.layers.embedding import OutputWeights, logits_by
from keras_transformer.layers.normalization import NORMS
from keras_transformer.layers.positions import POSITIONS
from keras_transformer.masks import segment_mask
from keras_transformer.model import Transformer, encoder, target_layers
from keras_transformer.search.cache import PASTS, Averages, Entries
from keras_transformer.search.incremental_blocks import (
    Cache,
    JoinedGate,
    JoinedProjection,
    bias_of_mask,
    project_memory,
    step_of_memory_attention,
)
from keras_transformer.search.state import AttendedSource, PerSentence


class TransformerState(NamedTuple):
    """What the decoder remembers of K hypotheses per sentence."""

    past: Entries | Averages  # what the blocks know of earlier positions
    memory: PerSentence  # of a SourceMemory
    attended: AttendedSource | tuple[()] = ()  # nothing if no score needs it


class SourceMemory(NamedTuple):
    """What the blocks attend to in the encoder's output, computed once per sentence."""

    of_blocks: tuple[Cache, ...]
    bias: Any  # float32 (B, 1, 1, S): `bias_of_mask` of the real source positions


class StepWeights(NamedTuple):
    """Weights in another form than the layers have them."""

    projections: tuple[JoinedProjection | JoinedGate, ...]  # one per block: what reads the past
    vocabulary: OutputWeights  # few rows times a transposed matrix would take up to 2.5 times as long


class IncrementalDecoder:
    """The decoder of a Transformer, run one position at a time.

    `start(source_ids, hypotheses)` runs the encoder once and returns the TransformerState of the first position.
    `step(weights, state, tokens, position)` returns the logits of the next token and the state one position later;
    `weights` is what `step_weights()` returns, computed once per search. With self-attention the state grows by one
    entry per hypothesis and step. If shapes are static, it must not grow: `longer` makes room first, and `has_room` is
    True.

    `projections` and `vocabulary` are functions that compute weights in another form. An export has others in their
    place, which read what was computed when it was opened.
    """

    def __init__(self, transformer: Transformer):
        config = transformer.transformer_config
        self.config = config
        self.encoder = encoder(transformer)
        self.embedding, self.logits = target_layers(transformer)
        self.positions = transformer.get_layer("target_positions")
        self.embedding_norm = transformer.get_layer("target_embedding_norm") if config.embedding_norm else None
        self.blocks = [transformer.get_layer(f"decoder_block_{n + 1}") for n in range(config.decoder_layers)]
        self.past = PASTS[config.decoder_layer]
        self.last_norm = transformer.get_layer("decoder_norm") if NORMS[config.norm].leaves_sum else None
        self.projections: Sequence[Callable[[], Any]] = [
            functools.partial(self.past.projection_of, block) for block in self.blocks
        ]
        self.vocabulary: Callable[[], OutputWeights] = lambda: self.logits.output_weights()  # which may be replaced

    def step_weights(self, tokens=None) -> StepWeights:
        """Return weights in the form that is fastest for products of few rows.

        With `tokens` int (C,), or (B, C) of each sentence, a step computes the logits of these alone, in this order.
        """
        vocabulary = self.vocabulary() if tokens is None else self.logits.output_weights(tokens)
        return StepWeights(tuple(projection() for projection in self.projections), vocabulary)

    def start(self, source_ids, hypotheses: int, counts_attention: bool = False) -> TransformerState:
        """Run the encoder. The state has no past yet; with `counts_attention` it keeps what `coverage_of` needs.

        Shapes: source_ids int (B, S), PAD after the end of each sentence. If a row has only PAD, the decoder reads 0
        from it, as in training.
        """
        source_ids = ops.convert_to_tensor(source_ids, dtype="int32")
        segments = ops.cast(ops.not_equal(source_ids, PAD), "int32")
        memory = self.encoder({"source_ids": source_ids, "source_segments": segments}, training=False)
        bias = bias_of_mask(segment_mask(ops.ones_like(segments[:, :1]), segments))  # (B, 1, S)
        has_source = ops.reshape(ops.cast(ops.any(segments != 0, axis=1), memory.dtype), (-1, 1, 1, 1))

        def projected(block: MemoryBlock) -> Cache:
            keys, values = project_memory(block.memory_attention, memory)
            return Cache(keys, values * has_source)

        of_source = PerSentence(SourceMemory(tuple(map(projected, self.blocks)), bias))
        sentences, length = ops.shape(source_ids)
        past = self.past.before_all(self.config, sentences, hypotheses, memory.dtype)
        if not counts_attention:
            return TransformerState(past, of_source)
        is_source = PerSentence(ops.expand_dims(segments != 0, 1))
        return TransformerState(past, of_source, AttendedSource(ops.zeros((sentences, hypotheses, length)), is_source))

    def step(self, weights: StepWeights, state: TransformerState, tokens, position, has_room: bool = False):
        """Feed one token per hypothesis: tokens int (B, K) at `position` int (). Return logits and the new state.

        Shapes: logits float32 (B * K, C), of all tokens or of those of `weights`; hypothesis k of sentence b is row
        b * K + k.
        """
        states = self.embedding(ops.reshape(tokens, (-1,)))
        if POSITIONS[self.config.positions].argument is None:
            states = self.positions(states, ops.reshape(position, (1,)))
        if self.embedding_norm is not None:
            states = self.embedding_norm(states)
        past, attend = state.past.reader(position, has_room, self.positions)
        of_blocks = []
        memories, bias = state.memory.shared
        for block, projection, of_block, memory in zip(
            self.blocks, weights.projections, state.past.of_blocks(), memories, strict=True
        ):
            states, of_block = attend(block, projection, states, of_block)
            states, attention = step_of_memory_attention(block, states, memory, bias, hypotheses=tokens.shape[1])
            states = block.feed(states)
            of_blocks.append(of_block)
        if self.last_norm is not None:
            states = self.last_norm(states)
        logits = ops.cast(logits_by(weights.vocabulary, states), "float32")
        state = state._replace(past=past.with_blocks(of_blocks))
        if not isinstance(state.attended, AttendedSource):
            return logits, state
        of_last_block = ops.cast(ops.mean(attention, axis=1), "float32")
        sums = state.attended.sums + of_last_block
        return logits, state._replace(attended=state.attended._replace(sums=sums))
