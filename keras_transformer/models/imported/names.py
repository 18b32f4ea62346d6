"""The weights of a MarianMT model by the names of Keras, Marian and Hugging Face, and what differs in their arrays.

A kernel of Hugging Face is transposed. Both others have all sines before all cosines, while positions here interleave
them (section 3.5), so the channels of d_model come in another order: the same model, since no layer but the sinusoids
knows one channel from another. Everything here goes both ways: `imported/` reads the table forwards, and an export to
Hugging Face backwards.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from keras_transformer.config import TransformerConfig

D_MODEL, HEADS, D_FF, PIECES = "d_model", "heads", "d_ff", "pieces"  # what an axis counts; "heads": h * d_k
POSITIONS = "positions"
UNUSED_POSITIONS = 2  # the first rows of a table of learned positions in Hugging Face's models, which none reads
BUCKETS, EACH_HEAD = "buckets", "each head"  # of a table of relative positions


class Layer(NamedTuple):
    """A layer of a block: what it is called, and what the axes of its first array count.

    A dense layer has a kernel of two axes and a bias; LayerNorm has gamma and beta, of one axis. Marian names arrays,
    Hugging Face layers. Without `marian_bias` there is no bias.
    """

    ours: str
    marian: str
    marian_bias: str
    huggingface: str
    axes: tuple[str, ...]


SUBLAYERS = {
    "self_attention": (
        Layer("self_attention/query", "self_Wq", "self_bq", "self_attn.q_proj", (D_MODEL, HEADS)),
        Layer("self_attention/key", "self_Wk", "self_bk", "self_attn.k_proj", (D_MODEL, HEADS)),
        Layer("self_attention/value", "self_Wv", "self_bv", "self_attn.v_proj", (D_MODEL, HEADS)),
        Layer("self_attention/output", "self_Wo", "self_bo", "self_attn.out_proj", (HEADS, D_MODEL)),
        Layer(
            *("self_attention_residual/norm", "self_Wo_ln_scale", "self_Wo_ln_bias", "self_attn_layer_norm"), (D_MODEL,)
        ),
    ),
    "ssru": (  # Hugging Face has none
        Layer("ssru/forget", "rnn_Wf", "rnn_bf", "", (D_MODEL, D_MODEL)),
        Layer("ssru/value", "rnn_W", "", "", (D_MODEL, D_MODEL)),
        Layer("ssru_residual/norm", "rnn_ffn_ln_scale", "rnn_ffn_ln_bias", "", (D_MODEL,)),
    ),
    "memory_attention": (
        Layer("memory_attention/query", "context_Wq", "context_bq", "encoder_attn.q_proj", (D_MODEL, HEADS)),
        Layer("memory_attention/key", "context_Wk", "context_bk", "encoder_attn.k_proj", (D_MODEL, HEADS)),
        Layer("memory_attention/value", "context_Wv", "context_bv", "encoder_attn.v_proj", (D_MODEL, HEADS)),
        Layer("memory_attention/output", "context_Wo", "context_bo", "encoder_attn.out_proj", (HEADS, D_MODEL)),
        Layer(
            *("memory_attention_residual/norm", "context_Wo_ln_scale", "context_Wo_ln_bias"),
            *("encoder_attn_layer_norm", (D_MODEL,)),
        ),
    ),
    "feed_forward": (
        Layer("feed_forward/inner", "ffn_W1", "ffn_b1", "fc1", (D_MODEL, D_FF)),
        Layer("feed_forward/outer", "ffn_W2", "ffn_b2", "fc2", (D_FF, D_MODEL)),
        Layer("feed_forward_residual/norm", "ffn_ffn_ln_scale", "ffn_ffn_ln_bias", "final_layer_norm", (D_MODEL,)),
    ),
}


class Weight(NamedTuple):
    """An array of a model: its path in Keras, its names in Marian and in Hugging Face, and what its axes count."""

    ours: str
    marian: str
    huggingface: str
    axes: tuple[str, ...]

    @property
    def is_kernel(self) -> bool:
        """Whether it is the matrix of a dense layer, (inputs, outputs): Hugging Face has (outputs, inputs)."""
        return len(self.axes) == 2 and not {PIECES, POSITIONS, BUCKETS} & {*self.axes}

    def shape(self, config: TransformerConfig) -> tuple[int, ...]:
        """Return the shape of the array in Keras."""
        sizes = {
            D_MODEL: config.d_model,
            HEADS: config.num_heads * config.d_k,
            D_FF: config.d_ff,
            PIECES: config.vocab_size,
            POSITIONS: config.max_positions,
            BUCKETS: config.relative_buckets,
            EACH_HEAD: config.num_heads,
        }
        return tuple(sizes[axis] for axis in self.axes)

    def huggingface_shape(self, config: TransformerConfig) -> tuple[int, ...]:
        """Return the shape of the array in Hugging Face."""
        shape = self.shape(config)
        if POSITIONS in self.axes:
            return shape[0] + UNUSED_POSITIONS, *shape[1:]
        return shape[::-1] if self.is_kernel else shape


def weights_of(config: TransformerConfig) -> list[Weight]:
    """Return every array of a Transformer whose projections and logits have biases.

    A model without some of these biases computes what it would with zeros for them.
    """
    return [*weights_of_tokens(config), *weights_of_side("encoder", config), *weights_of_side("decoder", config)]


def weights_of_tokens(config: TransformerConfig) -> list[Weight]:
    """Return the embeddings and the bias of the logits."""
    matrix, bias = (PIECES, D_MODEL), (PIECES,)
    if config.shared_embeddings and config.tied_logits:
        return [
            Weight("embedding/matrix", "Wemb", "model.shared.weight", matrix),
            Weight("embedding/bias", "decoder_ff_logit_out_b", "final_logits_bias", bias),
        ]
    embeddings = [
        Weight("source_embedding/matrix", "encoder_Wemb", "model.encoder.embed_tokens.weight", matrix),
        Weight("target_embedding/matrix", "decoder_Wemb", "model.decoder.embed_tokens.weight", matrix),
    ]
    if config.shared_embeddings:
        embeddings = [Weight("embedding/matrix", "Wemb", "model.shared.weight", matrix)]
    return [
        *embeddings,
        Weight("logits/matrix", "decoder_ff_logit_out_Wt", "lm_head.weight", matrix),
        Weight("logits/bias", "decoder_ff_logit_out_b", "final_logits_bias", bias),
    ]


def weights_of_side(side: str, config: TransformerConfig) -> Iterator[Weight]:
    """Yield the arrays of a side, "encoder" or "decoder": of positions and norms at both ends, and of the blocks."""
    sublayers: tuple[str, ...]
    ours, huggingface = {"encoder": "source", "decoder": "target"}[side], f"model.{side}"
    if config.positions == "learned":  # Marian has neither these nor the norm here
        yield Weight(f"{ours}_positions/table", "", f"{huggingface}.embed_positions.weight", (POSITIONS, D_MODEL))
    if config.embedding_norm:
        for name, there in (("gamma", "weight"), ("beta", "bias")):
            norm_there = f"{huggingface}.layernorm_embedding.{there}"
            yield Weight(f"{ours}_embedding_norm/{name}", "", norm_there, (D_MODEL,))
    if side == "encoder":
        number_of_blocks, sublayers = config.encoder_layers, ("self_attention", "feed_forward")
    else:
        number_of_blocks, sublayers = config.decoder_layers, (config.decoder_layer, "memory_attention", "feed_forward")
    for number in range(1, number_of_blocks + 1):
        for sublayer in sublayers:
            for layer in SUBLAYERS[sublayer]:
                yield from weights_of_layer(layer, side, number, config.norm)
    if config.norm == "pre":
        norm = f"{side}_norm", f"{side}_top_ln", f"model.{side}.layer_norm"
        yield Weight(f"{norm[0]}/gamma", f"{norm[1]}_scale", f"{norm[2]}.weight", (D_MODEL,))
        yield Weight(f"{norm[0]}/beta", f"{norm[1]}_bias", f"{norm[2]}.bias", (D_MODEL,))


def last_norm(config: TransformerConfig) -> list[str]:
    """Return the paths of gamma and beta of the norm whose outputs the logits are made of."""
    last = f"decoder_block_{config.decoder_layers}/feed_forward_residual/norm"
    return [f"{last if config.norm == 'post' else 'decoder_norm'}/{name}" for name in ("gamma", "beta")]


def weights_of_layer(layer: Layer, side: str, number: int, norm: str) -> Iterator[Weight]:
    """Yield the arrays of a layer in block `number` of a side; the first block is 1."""
    is_norm = len(layer.axes) == 1
    ours, marian = f"{side}_block_{number}/{layer.ours}", f"{side}_l{number}_"
    huggingface = f"model.{side}.layers.{number - 1}.{layer.huggingface}"
    suffix = "_pre" if is_norm and norm == "pre" else ""
    names = ("gamma", "beta") if is_norm else ("kernel", "bias")
    yield Weight(f"{ours}/{names[0]}", f"{marian}{layer.marian}{suffix}", f"{huggingface}.weight", layer.axes)
    if layer.marian_bias:
        axes = layer.axes[-1:]
        yield Weight(f"{ours}/{names[1]}", f"{marian}{layer.marian_bias}{suffix}", f"{huggingface}.bias", axes)


def order_of_channels(d_model: int) -> np.ndarray:
    """Return for each channel here the one of Marian and Hugging Face: 0, n, 1, n + 1, ... with n = d_model / 2.

    An odd d_model, which has no sinusoids, keeps its order.
    """
    if d_model % 2:
        return np.arange(d_model)
    return np.arange(d_model).reshape(2, d_model // 2).T.reshape(-1)


def as_ours(weight: Weight, array: np.ndarray, is_huggingface: bool) -> np.ndarray:
    """Return an array of Marian or Hugging Face as Keras has it."""
    if is_huggingface and weight.is_kernel:
        array = array.T
    if is_huggingface and POSITIONS in weight.axes:
        array = array[UNUSED_POSITIONS:]
    for axis, what in enumerate(weight.axes):
        if what == D_MODEL:
            array = np.take(array, order_of_channels(array.shape[axis]), axis)
    return array


def as_huggingface(weight: Weight, array: np.ndarray) -> np.ndarray:
    """Return an array of Keras as Hugging Face has it: the inverse of `as_ours`."""
    for axis, what in enumerate(weight.axes):
        if what == D_MODEL:
            array = np.take(array, np.argsort(order_of_channels(array.shape[axis])), axis)
    if POSITIONS in weight.axes:
        array = np.concatenate([np.zeros((UNUSED_POSITIONS, array.shape[1]), array.dtype), array])
    return array.T if weight.is_kernel else array
