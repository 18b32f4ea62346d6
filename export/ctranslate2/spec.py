"""The weights of a Transformer in CTranslate2's names: one function per kind of layer.

CTranslate2 stores the matrix of a linear layer as (outputs, inputs), the transpose of Keras' kernel. It joins the
projections of query, key and value into one matrix, and those of the memory's key and value into another.
"""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from ctranslate2.specs import attention_spec, common_spec, transformer_spec

from keras_transformer.config import ADDED_POSITIONS, GATED_ACTIVATIONS, TransformerConfig
from keras_transformer.ground.tokens import BOS, EOS, UNK
from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.blocks import AttentionBlock
from keras_transformer.layers.embedding import STARTS
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.model import Transformer, embedding_names

from ..expressible import SIZES

SINUSOIDS = 2048  # positions in the table; CTranslate2 reads 1,024 source tokens and writes 256, unless told otherwise
ACTIVATIONS = {
    "relu": common_spec.Activation.RELU,
    "gelu": common_spec.Activation.GELU,
    "silu": common_spec.Activation.SWISH,
    "swish": common_spec.Activation.SWISH,
    "tanh": common_spec.Activation.Tanh,
    "sigmoid": common_spec.Activation.Sigmoid,
    "geglu": common_spec.Activation.GELU,
    "geglu_tanh": common_spec.Activation.GELUTanh,
    "swiglu": common_spec.Activation.SWISH,
}
HAS = SIZES | {
    "activation": tuple(ACTIVATIONS),
    "norm": ("post", "pre"),
    "norm_kind": ("layer", "rms"),
    "scale_scores": (True, False),
    "embedding_norm": (False, True),
    "positions": ("sinusoidal", "learned", "rotary", "relative"),  # ALiBi in a decoder alone
    "relative_buckets": None,
    "relative_distance": None,
    "sinusoids": ("paper", "tensor2tensor"),
    "tied_logits": (True, False),
    "decoder_start": tuple(STARTS),
    "first_position": None,  # a table of positions has any
}


def model_spec(transformer: Transformer, pieces: Sequence[str]) -> transformer_spec.TransformerSpec:
    """Return a CTranslate2 model with these weights and this vocabulary, ready for `optimize` and `save`.

    The model must be one that HAS has. `pieces` are those of ids 0, 1, 2 and so on.
    """
    config = transformer.transformer_config
    spec = empty_spec(config)
    fill_embeddings(spec, transformer)
    for number, layer in enumerate(spec.encoder.layer, start=1):
        fill_block(layer, transformer.get_layer(f"encoder_block_{number}"), config)
    for number, layer in enumerate(spec.decoder.layer, start=1):
        block = transformer.get_layer(f"decoder_block_{number}")
        fill_block(layer, block, config)
        fill_memory_attention(layer.attention, block.memory_attention, config)
        fill_norm(layer.attention.layer_norm, block.memory_attention_residual.norm)
    if config.norm == "pre":
        fill_norm(spec.encoder.layer_norm, transformer.get_layer("encoder_norm"))
        fill_norm(spec.decoder.layer_norm, transformer.get_layer("decoder_norm"))
    fill_vocabulary(spec, pieces)
    spec.config.layer_norm_epsilon = config.norm_epsilon
    spec.validate()
    return spec


def head_width(config: TransformerConfig) -> int:
    """Return the width of a head in CTranslate2, which has one width for queries, keys and values."""
    return max(config.d_k, config.d_v)


def empty_spec(config: TransformerConfig) -> transformer_spec.TransformerSpec:
    """Return the layers of a configuration without weights."""
    shape: dict[str, Any] = {
        "num_heads": config.num_heads,
        "pre_norm": config.norm == "pre",
        "activation": ACTIVATIONS[config.activation],
        "head_dim": head_width(config),
        "rms_norm": config.norm_kind == "rms",
        "layernorm_embedding": config.embedding_norm,
        "ffn_glu": config.activation in GATED_ACTIVATIONS,
        "relative_attention_bias": config.positions == "relative",
    }
    if config.positions == "rotary":
        shape |= {"rotary_dim": config.d_k, "rotary_interleave": False}
    return transformer_spec.TransformerSpec(
        transformer_spec.TransformerEncoderSpec(config.encoder_layers, **shape),
        transformer_spec.TransformerDecoderSpec(config.decoder_layers, **shape),
    )


def fill_embeddings(spec: transformer_spec.TransformerSpec, transformer: Transformer) -> None:
    """Fill in the embeddings, their norms, the matrix of the logits, and the tables of positions of both sides."""
    config = transformer.transformer_config
    names = embedding_names(config)
    matrices = [array(transformer.get_layer(name).matrix) for name in names]
    spec.encoder.embeddings[0].weight, spec.decoder.embeddings.weight, spec.decoder.projection.weight = matrices
    if config.decoder_start != "bos":
        start = spec.decoder.embeddings.weight[STARTS[config.decoder_start]]
        spec.decoder.embeddings.weight = np.copy(spec.decoder.embeddings.weight)
        spec.decoder.embeddings.weight[BOS] = start
    if config.logits_bias:
        spec.decoder.projection.bias = array(transformer.get_layer(names[-1]).bias)
    for side, stack in (("source", spec.encoder), ("target", spec.decoder)):
        if config.embedding_norm:
            fill_norm(stack.layernorm_embedding, transformer.get_layer(f"{side}_embedding_norm"))
        positions = transformer.get_layer(f"{side}_positions")
        if config.positions in ADDED_POSITIONS:
            stack.position_encodings.encodings = array(positions.encodings(SINUSOIDS, config.d_model))
        for layer in stack.layer if config.positions == "relative" else ():
            layer.self_attention.relative_attention_bias = array(positions.table)
            layer.self_attention.relative_attention_max_distance = np.int32(config.relative_distance)


def fill_block(
    layer: transformer_spec.TransformerEncoderLayerSpec | transformer_spec.TransformerDecoderLayerSpec,
    block: AttentionBlock,
    config: TransformerConfig,
) -> None:
    """Fill in the parts that blocks of encoder and decoder share: self-attention and the feed-forward network."""
    fill_self_attention(layer.self_attention, block.self_attention, config)
    fill_norm(layer.self_attention.layer_norm, block.self_attention_residual.norm)
    fill_feed_forward(layer.ffn, block.feed_forward)
    fill_norm(layer.ffn.layer_norm, block.feed_forward_residual.norm)


def fill_self_attention(
    spec: attention_spec.MultiHeadAttentionSpec, attention: MultiHeadAttention, config: TransformerConfig
) -> None:
    """Fill in self-attention. linear 0: query, key and value; linear 1: output."""
    inputs = [attention.query_projection, attention.key_projection, attention.value_projection]
    fill_joined(spec.linear[0], inputs, config)
    fill_output(spec, attention, config)


def fill_memory_attention(
    spec: attention_spec.MultiHeadAttentionSpec, attention: MultiHeadAttention, config: TransformerConfig
) -> None:
    """Fill in the attention to the memory. linear 0: query; linear 1: key and value; linear 2: output."""
    fill_joined(spec.linear[0], [attention.query_projection], config)
    fill_joined(spec.linear[1], [attention.key_projection, attention.value_projection], config)
    fill_output(spec, attention, config)


def fill_joined(spec: common_spec.LinearSpec, projections: list[keras.layers.Dense], config: TransformerConfig) -> None:
    """Fill in projections into heads, one below the other; heads narrower than `head_width` are padded with zeros."""
    spec.weight = np.concatenate([widened(array(projection.kernel).T, config) for projection in projections])
    spec.bias = np.concatenate(
        [widened(bias_of(projection)[:, np.newaxis], config)[:, 0] for projection in projections]
    )


def fill_output(
    spec: attention_spec.MultiHeadAttentionSpec, attention: MultiHeadAttention, config: TransformerConfig
) -> None:
    """Fill in the projection of the joined heads, and the factor of the scores, whatever the width."""
    spec.linear[-1].weight = widened(array(attention.output_projection.kernel), config).T
    spec.linear[-1].bias = bias_of(attention.output_projection)
    spec.queries_scale = np.float32(attention.score_factor)


def widened(rows: np.ndarray, config: TransformerConfig) -> np.ndarray:
    """Add rows of zeros to each head, which change neither its scores nor its output.

    Shapes: (num_heads * width, N), width d_k or d_v -> (num_heads * head_width, N).
    """
    heads = rows.reshape(config.num_heads, -1, rows.shape[-1])
    missing = head_width(config) - heads.shape[1]
    return np.pad(heads, [(0, 0), (0, missing), (0, 0)]).reshape(-1, rows.shape[-1])


def fill_feed_forward(spec: transformer_spec.FeedForwardSpec, feed_forward: FeedForward) -> None:
    """Fill in the linear layers of a feed-forward network, three if it is gated."""
    layers = [(spec.linear_0, feed_forward.inner), (spec.linear_1, feed_forward.outer)]
    if feed_forward.linear is not None:
        layers.append((spec.linear_0_noact, feed_forward.linear))
    for linear, dense in layers:
        linear.weight, linear.bias = np.ascontiguousarray(array(dense.kernel).T), bias_of(dense)


def fill_norm(spec: common_spec.LayerNormSpec, norm: keras.layers.Layer) -> None:
    """Fill in LayerNorm or RMSNorm: one array by the name of each of CTranslate2's, of which RMSNorm has the first."""
    for name, weight in zip(("gamma", "beta"), norm.weights, strict=False):
        setattr(spec, name, array(weight))


def fill_vocabulary(spec: transformer_spec.TransformerSpec, pieces: Sequence[str]) -> None:
    """Fill in the pieces of both sides, the first token of an output, and that every source ends in EOS."""
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = pieces[UNK], pieces[BOS], pieces[EOS]
    spec.config.decoder_start_token = pieces[BOS]
    spec.config.add_source_eos = True


def bias_of(dense: keras.layers.Dense) -> np.ndarray:
    """Return the bias, or zeros if there is none: CTranslate2 expects one in every linear layer of a block."""
    return array(dense.bias) if dense.use_bias else np.zeros(dense.units, np.float32)


def array(weight) -> np.ndarray:
    """Return a weight in float32."""
    return np.asarray(keras.ops.convert_to_numpy(weight), np.float32)
