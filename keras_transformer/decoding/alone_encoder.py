"""The encoder of one sentence without padding: what `encoder_block_N` compute, in fewer operations."""

from collections.abc import Sequence

import keras
from keras import ops

from keras_transformer.config import TransformerConfig
from keras_transformer.decoding.alone_weights import Norm, affine, feed, heads_of, merged, norm_of, norm_weights
from keras_transformer.decoding.incremental_attention import JoinedProjection


def encode_alone(encoder: keras.Model, config: TransformerConfig, projections: Sequence[JoinedProjection], source_ids):
    """Return the memory of one sentence: source_ids int32 (S,) without PAD -> (S, d_model).

    The encoder is one of self-attention, of whose blocks these are the projections.
    """
    embedding = encoder.get_layer("embedding" if config.shared_embeddings else "source_embedding")
    tokens = ops.shape(source_ids)[0]
    states = encoder.get_layer("source_positions")(embedding(source_ids), ops.arange(tokens))
    for number, (kernel, bias) in enumerate(projections, start=1):
        block = encoder.get_layer(f"encoder_block_{number}")
        norm, feed_norm = norm_of(block.self_attention_residual), norm_of(block.feed_forward_residual)
        projected = ops.matmul(norm.sublayer_input(states), kernel)
        projected = projected if bias is None else projected + bias
        query, keys, values = heads_of(projected, tokens, config.num_heads)
        attention = ops.softmax(ops.einsum("hqd,hkd->hqk", query, keys), axis=-1)
        heads = merged(ops.einsum("hqk,hkd->hqd", attention, values), tokens)
        states = norm.add_and_norm(states, affine(block.self_attention.output_projection)(heads))
        states = feed_norm.add_and_norm(states, feed(block.feed_forward, feed_norm.sublayer_input(states)))
    if config.norm == "pre":
        states = Norm(*norm_weights(encoder.get_layer("encoder_norm")), is_post=False)(states)
    return states
