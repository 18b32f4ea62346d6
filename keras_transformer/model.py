"""Which layer feeds which: the Transformer of figure 1, assembled with the functional API."""

from typing import Any, NamedTuple

import keras

from keras_transformer.config import TransformerConfig
from keras_transformer.layers.blocks import Block, DecoderBlock, EncoderBlock
from keras_transformer.layers.convolution import SegmentConvolution
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.embedding import TokenEmbedding
from keras_transformer.layers.masking import CausalSegmentMask, PositionsInSegment, SegmentMask
from keras_transformer.layers.normalization import NORMS, norm_of
from keras_transformer.layers.positions import POSITIONS
from keras_transformer.layers.recurrent import Recurrent
from keras_transformer.layers.restricted_attention import RestrictedSelfAttention
from keras_transformer.layers.shift import ShiftedPositions
from keras_transformer.layers.ssru import SSRUDecoderBlock
from keras_transformer.layers.sublayer_block import SublayerBlock
from keras_transformer.model_config import BaseModelConfig
from keras_transformer.translation_model import INPUTS, TranslationModel, policy_of

DECODER_BLOCKS = {"self_attention": DecoderBlock, "ssru": SSRUDecoderBlock}


@keras.saving.register_keras_serializable("keras_transformer")
class Transformer(TranslationModel):
    """The encoder-decoder of Vaswani et al. 2017, from a TransformerConfig.

    Args:
        config: the shape of the model.
        dtype: name of a Keras dtype policy, for example "mixed_bfloat16". None means the global policy.

    Inputs, a dict of int32: source_ids (B, S), source_segments (B, S), target_ids (B, T), target_segments (B, T).
    Output: logits (B, T, vocab_size) of the token that follows each target position, in the compute dtype.

    The graph is flat: `get_layer` finds every layer by its name. The names are "encoder_block_1", "decoder_block_1"
    and so on, "source_positions", "target_positions", and those of `embedding_names`. If norms come first, there are
    "encoder_norm" and "decoder_norm" too, and with `config.embedding_norm` "source_embedding_norm" and
    "target_embedding_norm".
    """

    config_class = TransformerConfig
    model_config: TransformerConfig

    def __init__(self, config: TransformerConfig, dtype: str | None = None, name: str = "transformer", **kwargs):
        self.check_config(config)
        policy = policy_of(dtype)
        super().__init__(config, policy, *connect(config, policy), name=name, **kwargs)

    @property
    def transformer_config(self) -> TransformerConfig:
        """The configuration, under the name that a Transformer alone has for it."""
        return self.model_config


def connect(config: TransformerConfig, dtype: keras.DTypePolicy) -> tuple:
    """Wire the layers. Returns the dict of symbolic inputs and the symbolic logits."""
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in INPUTS}
    source_segments, target_segments = inputs["source_segments"], inputs["target_segments"]
    source_embedding, target_embedding, logits_layer = embedding_layers(config, dtype, config.logits_bias)

    mask_or_segments = who_belongs_together(config, source_segments)
    positions = positions_of("source", source_segments, config, dtype)
    states = embed_with_positions(source_embedding, inputs["source_ids"], positions, config, dtype)
    for number in range(1, config.encoder_layers + 1):
        encode = encoder_block(number, config, dtype)
        states = states_of(encode(states, mask_or_segments, **positions.of_attention))
    memory = normalised_at_end(states, "encoder_norm", config, dtype)

    before = what_comes_before(config, target_segments)
    memory_mask = SegmentMask(name="memory_mask")(target_segments, source_segments)
    positions = positions_of("target", target_segments, config, dtype)
    states = embed_with_positions(target_embedding, inputs["target_ids"], positions, config, dtype)
    for number in range(1, config.decoder_layers + 1):
        decode = block(DECODER_BLOCKS[config.decoder_layer], f"decoder_block_{number}", config, dtype=dtype)
        states = states_of(decode(states, memory, before, memory_mask, **positions.of_attention))
    states = normalised_at_end(states, "decoder_norm", config, dtype)
    return inputs, logits_layer(states, reverse=True)


def who_belongs_together(config: TransformerConfig, segments):
    """What tells an encoder block which positions belong to one sentence: segments int (B, S) or a mask of them.

    Self-attention takes a mask, bool (B, S, S); every other sublayer takes the segments themselves.
    """
    if config.encoder_layer == "self_attention":
        return SegmentMask(name="source_mask")(segments, segments)
    return segments


def what_comes_before(config: TransformerConfig, segments):
    """What tells a decoder block the earlier positions of a sentence: segments int (B, T) or a mask, bool (B, T, T)."""
    if config.decoder_layer == "self_attention":
        return CausalSegmentMask(name="target_mask")(segments)
    return segments


def encoder_block(number: int, config: TransformerConfig, dtype: keras.DTypePolicy) -> Block:
    """Block `number` of the encoder, the first is 1, with the sublayer that `config.encoder_layer` names."""
    name = f"encoder_block_{number}"
    if config.encoder_layer == "self_attention":
        return block(EncoderBlock, name, config, dtype=dtype)
    return block(SublayerBlock, name, config, dtype=dtype, sublayer=encoder_sublayer(number, config, dtype))


def encoder_sublayer(number: int, config: TransformerConfig, dtype: keras.DTypePolicy) -> keras.layers.Layer:
    """What takes the place of self-attention in block `number` of the encoder: a layer (states, segments) -> states.

    The recurrent one is a GRU that reads forward, the plain recurrent layer of Table 1.
    """
    if config.encoder_layer == "recurrent":
        return Recurrent(config.d_model, "gru", "forward", dtype=dtype, name="recurrent")
    if config.encoder_layer == "convolutional":
        dilation = 2 ** (number - 1) if config.dilated else 1
        return SegmentConvolution(config.kernel_size, dilation, dtype=dtype, name="convolution")
    return RestrictedSelfAttention(
        config.num_heads,
        config.d_k,
        config.neighbourhood,
        config.d_v,
        config.attention_bias,
        scale_scores=config.scale_scores,
        dtype=dtype,
        name="self_attention",
    )


def states_of(outputs):
    """The states among the outputs of a block, which may be alone or stand before attention weights."""
    return keras.tree.flatten(outputs)[0]


def block(block_class: type[Block], name: str, config: TransformerConfig, **kwargs) -> Block:
    """A block of this configuration, made with other arguments of its class."""
    return block_class(**block_class.config_class.values_of(config), name=name, **kwargs)


def embedding_layers(
    config: BaseModelConfig, dtype: keras.DTypePolicy, logits_bias: bool = False
) -> tuple[TokenEmbedding, ...]:
    """The layers that embed the source, embed the target, and compute logits: one layer if shared (section 3.4)."""

    def layer(name: str, computes_logits: bool) -> TokenEmbedding:
        of_model = config.to_dict() if computes_logits else None
        use_bias, start = computes_logits and logits_bias, getattr(config, "decoder_start", "bos")
        return TokenEmbedding(config.vocab_size, config.d_model, use_bias, of_model, start, dtype=dtype, name=name)

    last = embedding_names(config)[-1]
    layers = {name: layer(name, computes_logits=name == last) for name in dict.fromkeys(embedding_names(config))}
    return tuple(layers[name] for name in embedding_names(config))


def embedding_names(config: BaseModelConfig) -> tuple[str, str, str]:
    """Return the names of the layers that embed the source, embed the target, and compute logits."""
    if not config.shared_embeddings:
        return "source_embedding", "target_embedding", "logits"
    return "embedding", "embedding", "embedding" if getattr(config, "tied_logits", True) else "logits"


def target_layers(model: keras.Model) -> tuple[TokenEmbedding, TokenEmbedding]:
    """The layers of a model, of any kind, that embed the target and compute logits."""
    _, target, logits = map(model.get_layer, embedding_names(model.model_config))
    return target, logits


class SidePositions(NamedTuple):
    """The positions of a side, "source" or "target", int (B, L), and what is made of them, once for all blocks."""

    side: str
    numbers: Any
    added: keras.layers.Layer | None  # adds them to embeddings, if it is that kind
    of_attention: dict[str, Any]  # arguments of the blocks, if they act in self-attention


def positions_of(side: str, segments, config: TransformerConfig, dtype: keras.DTypePolicy) -> SidePositions:
    """Return the positions of a side: segments int (B, L)."""
    numbers = PositionsInSegment(name=f"{side}_position_numbers")(segments)
    kind, of_side = POSITIONS[config.positions], {"bidirectional": side == "source"}
    arguments = {name: of_side[name] if name in of_side else getattr(config, name) for name in kind.fields}
    layer = kind.layer(**arguments, dtype=dtype, name=f"{side}_positions")
    if kind.argument is None:
        if config.shift_positions:
            numbers = ShiftedPositions(config.shift_positions, name=f"{side}_shift")(numbers, segments)
        return SidePositions(side, numbers, layer, {})
    return SidePositions(side, numbers, None, {kind.argument: layer(numbers)})


def embed_with_positions(
    embedding: TokenEmbedding, ids, positions: SidePositions, config: TransformerConfig, dtype: keras.DTypePolicy
):
    """Token embeddings plus positions, normalised if `config.embedding_norm`, with dropout on the sum (section 5.4).

    Shapes: ids int (B, L) -> (B, L, d_model).
    """
    states = embedding(ids)
    if positions.added is not None:
        states = positions.added(states, positions.numbers)
    if config.embedding_norm:
        states = norm_of(config, dtype=dtype, name=f"{positions.side}_embedding_norm")(states)
    return Dropout(config.dropout, dtype=dtype, name=f"{positions.side}_dropout")(states)


def normalised_at_end(states, name: str, config: TransformerConfig, dtype: keras.DTypePolicy):
    """Pre-norm blocks only add to `states`, so their sum is normalised once at the end. Post-norm needs nothing."""
    return norm_of(config, dtype=dtype, name=name)(states) if NORMS[config.norm].leaves_sum else states


def encoder(transformer: Transformer) -> keras.Model:
    """The encoder alone, with the same weights: source_ids and source_segments -> memory (B, S, d_model).

    Raises TypeError for any other model.
    """
    if not hasattr(transformer, "transformer_config"):
        raise TypeError(f"encoder needs a Transformer. Received: {transformer!r}")
    config = transformer.transformer_config
    if NORMS[config.norm].leaves_sum:
        memory = transformer.get_layer("encoder_norm").output
    else:
        memory = states_of(transformer.get_layer(f"encoder_block_{config.encoder_layers}").output)
    inputs = {name: transformer.input[name] for name in ("source_ids", "source_segments")}
    return keras.Model(inputs, memory, name="encoder")


def with_attention(transformer: Transformer) -> keras.Model:
    """The same weights and graph, with the attention weights of every block among the outputs.

    Returns a model whose output is a dict: "logits" (B, T, vocab_size), "encoder_block_N/self" (B, h, S, S),
    "decoder_block_N/self" (B, h, T, T) and "decoder_block_N/memory" (B, h, T, S). A convolutional or
    recurrent encoder and an SSRU have no attention, and nothing among the outputs.
    """
    config, outputs = transformer.transformer_config, {"logits": transformer.output}
    for number in range(1, config.encoder_layers + 1):
        name = f"encoder_block_{number}"
        _, *weights = keras.tree.flatten(transformer.get_layer(name).output)
        outputs |= {f"{name}/self": of_self_attention for of_self_attention in weights}
    for number in range(1, config.decoder_layers + 1):
        name = f"decoder_block_{number}"
        _, *weights, outputs[f"{name}/memory"] = transformer.get_layer(name).output
        outputs |= {f"{name}/self": of_self_attention for of_self_attention in weights}
    return keras.Model(transformer.input, outputs, name="transformer_with_attention")
