"""The weights of a T5 by the names of Keras and Hugging Face: RMSNorm has one array, attention and logits no bias."""

from collections.abc import Iterator

from keras_transformer.config import GATED_ACTIVATIONS, TransformerConfig
from keras_transformer.models.imported.names import BUCKETS, D_FF, D_MODEL, EACH_HEAD, HEADS, Weight

SHARED, LM_HEAD = "shared.weight", "lm_head.weight"
ATTENTION = {
    "query": ("q", (D_MODEL, HEADS)),
    "key": ("k", (D_MODEL, HEADS)),
    "value": ("v", (D_MODEL, HEADS)),
    "output": ("o", (HEADS, D_MODEL)),
}
FEED_FORWARD = {"inner": ("wi", (D_MODEL, D_FF)), "outer": ("wo", (D_FF, D_MODEL))}
GATED = {"inner": ("wi_0", (D_MODEL, D_FF)), "linear": ("wi_1", (D_MODEL, D_FF)), "outer": ("wo", (D_FF, D_MODEL))}
SUBLAYERS = {  # by side, in order
    "encoder": ("self_attention", "feed_forward"),
    "decoder": ("self_attention", "memory_attention", "feed_forward"),
}
CLASSES = {
    "self_attention": "SelfAttention",
    "memory_attention": "EncDecAttention",
    "feed_forward": "DenseReluDense",
}
UNUSED = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"  # of old files; no model reads it


def weights_of_blocks(config: TransformerConfig) -> Iterator[Weight]:
    """Yield every array of both sides, but for the embeddings and the logits."""
    for side, number_of_blocks in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for number in range(1, number_of_blocks + 1):
            for place, sublayer in enumerate(SUBLAYERS[side]):
                ours = f"{side}_block_{number}/{sublayer}"
                yield from weights_of_sublayer(ours, f"{side}.block.{number - 1}.layer.{place}", sublayer, config)
        yield Weight(f"{side}_norm/scale", "", f"{side}.final_layer_norm.weight", (D_MODEL,))
        table = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        positions = {"encoder": "source", "decoder": "target"}[side]
        yield Weight(f"{positions}_positions/table", "", table, (BUCKETS, EACH_HEAD))


def weights_of_sublayer(ours: str, theirs: str, sublayer: str, config: TransformerConfig) -> Iterator[Weight]:
    """Yield the arrays of a sublayer and of its norm, whose names begin with `ours` and `theirs`."""
    layers = ATTENTION
    if sublayer == "feed_forward":
        layers = GATED if config.activation in GATED_ACTIVATIONS else FEED_FORWARD
    for layer, (name, axes) in layers.items():
        yield Weight(f"{ours}/{layer}/kernel", "", f"{theirs}.{CLASSES[sublayer]}.{name}.weight", axes)
    yield Weight(f"{ours}_residual/norm/scale", "", f"{theirs}.layer_norm.weight", (D_MODEL,))


def biases_of(config: TransformerConfig) -> Iterator[Weight]:
    """Yield the biases of feed-forward networks, of which T5 has none: not of an import, unless it is an old one."""
    if config.feed_forward_bias and config.activation not in GATED_ACTIVATIONS:
        for side, number_of_blocks in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
            for number in range(1, number_of_blocks + 1):
                for layer, axis in (("inner", D_FF), ("outer", D_MODEL)):
                    yield Weight(f"{side}_block_{number}/feed_forward/{layer}/bias", "", "", (axis,))
