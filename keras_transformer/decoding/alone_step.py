"""One position of the hypotheses of one sentence: `IncrementalDecoder.step` in fewer operations.

The attention of a block to the source is two matrices of the sentence: queries times keys, and values times the output
projection. Rows are gathered where others would be transposed, and weights are read once per sentence.
"""

from typing import Any, NamedTuple

import numpy as np
from keras import ops

from keras_transformer.decoding.alone_encoder import encode_alone
from keras_transformer.decoding.alone_weights import Affine, Norm, affine, heads_of, merged, norm_of, norm_weights
from keras_transformer.decoding.gather import rows_at
from keras_transformer.decoding.incremental_attention import JoinedProjection
from keras_transformer.decoding.past import Entries
from keras_transformer.decoding.step import IncrementalDecoder
from keras_transformer.layers.attention import MASKED_SCORE
from keras_transformer.layers.blocks import DecoderBlock


class BlockWeights(NamedTuple):
    """What a step reads of one block and, of its attention to the source, of the sentence: S tokens."""

    projection: Affine  # (d_model, 3 h d): queries, divided by sqrt(d), keys and values
    output: Affine  # (h d, d_model)
    self_norm: Norm
    scores: Affine  # (d_model, h S): from states to what every head's query says of each key
    values: Affine  # (h S, d_model): what every head's attention to a token adds to states
    memory_norm: Norm
    inner: Affine
    activation: Any
    outer: Affine
    feed_norm: Norm


class SentenceWeights(NamedTuple):
    """What the steps of a sentence read."""

    embedding: Any  # (V, d_model)
    positions: Any  # (L, d_model): what is added to embeddings
    blocks: tuple[BlockWeights, ...]
    last_norm: Norm | None
    vocabulary: Affine  # (d_model, V)


class OneState(NamedTuple):
    """The past of self-attention: E entries, as in Entries."""

    caches: tuple[tuple[Any, Any], ...]  # keys and values of each block, (h, E, d)
    bias: Any  # float32 (K, E)

    def of_parents(self, parents) -> "OneState":
        """Return the state in which hypothesis k continues hypothesis parents[k], int32 (K,)."""
        return self._replace(bias=rows_at(self.bias, parents))


class AloneDecoder:
    """The decoder of a Transformer for one sentence at a time: see `is_for`."""

    def __init__(self, decoder: IncrementalDecoder):
        self.decoder, self.config = decoder, decoder.config

    @staticmethod
    def is_for(decoder) -> bool:
        """Return whether a decoder has what this one can compute: self-attention of equal widths in float32."""
        if type(decoder) is not IncrementalDecoder or decoder.past is not Entries:
            return False
        if decoder.config.encoder_layer != "self_attention":
            return False
        dtypes = {layer.compute_dtype for layer in (*decoder.blocks, decoder.logits)}
        return dtypes == {"float32"} and decoder.config.d_k == decoder.config.d_v

    def start(self, source_ids, hypotheses: int, max_length) -> tuple[SentenceWeights, OneState]:
        """Run the encoder: source_ids int32 (S,) without PAD. Returns the weights and the state without a past."""
        decoder, config = self.decoder, self.config
        projections = [projection() for projection in decoder.encoder_projections]
        memory = encode_alone(decoder.encoder, config, projections, source_ids)
        places = ops.arange(max_length)
        nothing = ops.zeros((1, config.d_model), "float32") * ops.ones((max_length, 1), "float32")
        weights = SentenceWeights(
            decoder.embedding.in_compute_dtype(),
            decoder.positions(nothing, places),
            tuple(
                block_weights(block, projection(), memory)
                for block, projection in zip(decoder.blocks, decoder.projections, strict=True)
            ),
            None if decoder.last_norm is None else Norm(*norm_weights(decoder.last_norm), is_post=False),
            Affine(*decoder.vocabulary()),
        )
        none = 0 * max_length
        cache = tuple(ops.zeros((config.num_heads, none, config.d_k), "float32") for _ in range(2))
        return weights, OneState((cache,) * config.decoder_layers, ops.zeros((hypotheses, none), "float32"))

    def step(self, weights: SentenceWeights, state: OneState, tokens, position) -> tuple:
        """Feed one token per hypothesis: tokens int32 (K,). Returns logits (K, V) and the state one position later."""
        hypotheses = tokens.shape[0]
        scale = ops.cast(self.config.d_model**0.5, "float32")
        states = rows_at(weights.embedding, tokens) * scale + rows_at(weights.positions, position)
        own = (1 - np.eye(hypotheses, dtype="float32")) * MASKED_SCORE
        bias = ops.concatenate([state.bias, own], axis=1)
        caches = []
        for block, cache in zip(weights.blocks, state.caches, strict=True):
            output, cache = self.attend_to_past(block, block.self_norm.sublayer_input(states), cache, bias)
            states = block.self_norm.add_and_norm(states, output)
            output = self.attend_to_memory(block, block.memory_norm.sublayer_input(states))
            states = block.memory_norm.add_and_norm(states, output)
            output = block.outer(block.activation(block.inner(block.feed_norm.sublayer_input(states))))
            states = block.feed_norm.add_and_norm(states, output)
            caches.append(cache)
        if weights.last_norm is not None:
            states = weights.last_norm(states)
        return weights.vocabulary(states), OneState(tuple(caches), bias)

    def attend_to_past(self, block: BlockWeights, states, cache, bias) -> tuple:
        """(K, d_model) -> output (K, d_model), and the cache with K more entries."""
        hypotheses = states.shape[0]
        query, *new = heads_of(block.projection(states), hypotheses, self.config.num_heads)  # (h, K, d)
        keys, values = (ops.concatenate([old, each], axis=1) for old, each in zip(cache, new, strict=True))
        attention = ops.softmax(ops.einsum("hkd,hed->hke", query, keys) + bias, axis=-1)
        heads = ops.einsum("hke,hed->hkd", attention, values)
        return block.output(merged(heads, hypotheses)), (keys, values)

    def attend_to_memory(self, block: BlockWeights, states):
        """(K, d_model) -> (K, d_model)"""
        hypotheses, heads = states.shape[0], self.config.num_heads
        scores = ops.reshape(block.scores(states), (hypotheses * heads, -1))
        return block.values(ops.reshape(ops.softmax(scores, axis=-1), (hypotheses, -1)))


def block_weights(block: DecoderBlock, projection: JoinedProjection, memory) -> BlockWeights:
    """Return what the steps of a sentence read of a block: memory (S, d_model)."""
    attention, feed_forward = block.memory_attention, block.feed_forward
    heads, d_k, d_model = attention.num_heads, attention.key_dim, memory.shape[-1]
    keys = ops.reshape(affine(attention.key_projection)(memory) * d_k**-0.5, (-1, heads, d_k))  # (S, h, d)
    values = ops.reshape(affine(attention.value_projection)(memory), (-1, heads, d_k))

    def to_scores(weight):
        scores = ops.einsum("chd,shd->chs", ops.reshape(weight, (-1, heads, d_k)), keys)
        return ops.reshape(scores, (*weight.shape[:-1], -1))

    kernel, bias = affine(attention.query_projection)
    of_output, output_bias = affine(attention.output_projection)
    of_values = ops.einsum("shd,hdc->hsc", values, ops.reshape(of_output, (heads, d_k, d_model)))
    return BlockWeights(
        Affine(*projection),
        affine(block.self_attention.output_projection),
        norm_of(block.self_attention_residual),
        Affine(to_scores(kernel), None if bias is None else to_scores(bias)),
        Affine(ops.reshape(of_values, (-1, d_model)), output_bias),
        norm_of(block.memory_attention_residual),
        affine(feed_forward.inner),
        feed_forward.inner.activation,
        affine(feed_forward.outer),
        norm_of(block.feed_forward_residual),
    )
