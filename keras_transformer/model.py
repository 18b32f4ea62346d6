"""Which layer feeds which: the Transformer of figure 1, assembled with the functional API."""

import dataclasses

import keras

from keras_transformer.config import TransformerConfig
from keras_transformer.layers.blocks import DecoderBlock, EncoderBlock
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.embedding import LearnedPositions, SinusoidalPositions, TokenEmbedding
from keras_transformer.layers.masking import CausalSegmentMask, PositionsInSegment, SegmentMask


@keras.saving.register_keras_serializable("keras_transformer")
class Transformer(keras.Model):
    """The encoder-decoder of Vaswani et al. 2017, from a TransformerConfig.

    Inputs, a dict of int32: source_ids (B, S), source_segments (B, S), target_ids (B, T), target_segments (B, T).
    Output: logits (B, T, vocab_size) of the token that follows each target position, in the compute dtype of `dtype`,
    a Keras policy by name (the global one where None).

    The graph is flat: every layer is found by its name with `get_layer`: "encoder_block_1", "decoder_block_1" and so
    on, "embedding" (or "source_embedding", "target_embedding" and "logits", where not shared), "source_positions",
    "target_positions", and "encoder_norm" and "decoder_norm" where LayerNorm comes first.
    """

    def __init__(self, config, dtype=None, name="transformer", **kwargs):
        policy = keras.dtype_policies.get(dtype)  # the global one where None
        inputs, logits = connect(config, policy)
        super().__init__(inputs=inputs, outputs=logits, name=name, **kwargs)
        self.transformer_config, self.precision = config, policy.name

    def get_config(self):
        return {"config": dataclasses.asdict(self.transformer_config), "dtype": self.precision, "name": self.name}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(TransformerConfig(**config["config"]), config["dtype"], config["name"])


def connect(config, dtype=None):
    """Wire the layers. Returns the dict of symbolic inputs and the symbolic logits."""
    inputs = {
        name: keras.Input((None,), dtype="int32", name=name)
        for name in ("source_ids", "source_segments", "target_ids", "target_segments")
    }
    source_segments, target_segments = inputs["source_segments"], inputs["target_segments"]
    source_embedding, target_embedding, logits = embeddings(config, dtype)
    source_mask = SegmentMask(name="source_mask")(source_segments, source_segments)
    states = embedded(source_embedding, inputs["source_ids"], source_segments, "source", config, dtype)
    for number in range(1, config.encoder_layers + 1):
        block = EncoderBlock(**block_arguments(config), dtype=dtype, name=f"encoder_block_{number}")
        states, _ = block(states, source_mask)
    memory = last_norm(states, "encoder_norm", config, dtype)

    target_mask = CausalSegmentMask(name="target_mask")(target_segments)
    memory_mask = SegmentMask(name="memory_mask")(target_segments, source_segments)
    states = embedded(target_embedding, inputs["target_ids"], target_segments, "target", config, dtype)
    for number in range(1, config.decoder_layers + 1):
        block = DecoderBlock(**block_arguments(config), dtype=dtype, name=f"decoder_block_{number}")
        states, _, _ = block(states, memory, target_mask, memory_mask)
    return inputs, logits(last_norm(states, "decoder_norm", config, dtype), reverse=True)


def embeddings(config, dtype=None):
    """The layers that embed source, embed target, and score: one and the same where shared (section 3.4)."""
    names = ["embedding"] if config.shared_embeddings else ["source_embedding", "target_embedding", "logits"]
    layers = [TokenEmbedding(config.vocab_size, config.d_model, dtype=dtype, name=name) for name in names]
    return layers * 3 if config.shared_embeddings else layers


def embedded(embedding, ids, segments, side, config, dtype):
    """Token embeddings plus positions, with dropout on the sum (section 5.4)."""
    positions = PositionsInSegment(name=f"{side}_position_numbers")(segments)
    states = position_layer(config, side, dtype)(embedding(ids), positions)
    return Dropout(config.dropout, dtype=dtype, name=f"{side}_dropout")(states)


def position_layer(config, side, dtype):
    if config.positions == "learned":
        return LearnedPositions(config.max_positions, dtype=dtype, name=f"{side}_positions")
    return SinusoidalPositions(dtype=dtype, name=f"{side}_positions")


def last_norm(states, name, config, dtype):
    """Where LayerNorm comes first, the sum of all sublayers is normalised once more at the end."""
    if config.norm == "post":
        return states
    return keras.layers.LayerNormalization(epsilon=config.norm_epsilon, dtype=dtype, name=name)(states)


def block_arguments(config):
    names = "num_heads", "key_dim", "value_dim", "d_ff", "activation", "dropout", "norm", "norm_epsilon"
    return {name: getattr(config, name) for name in names} | {"attention_bias": config.attention_bias}


def encoder(transformer):
    """The encoder alone, on the same weights: source_ids and source_segments -> memory (B, S, d_model)."""
    config = transformer.transformer_config
    if config.norm == "pre":
        memory = transformer.get_layer("encoder_norm").output
    else:
        memory = transformer.get_layer(f"encoder_block_{config.encoder_layers}").output[0]
    inputs = {name: transformer.input[name] for name in ("source_ids", "source_segments")}
    return keras.Model(inputs, memory, name="encoder")


def with_attention(transformer):
    """The same weights and graph, with the attention weights of every layer among the outputs.

    Returns a model whose output is a dict: "logits" (B, T, vocab_size), "encoder_block_N/self" (B, H, S, S),
    "decoder_block_N/self" (B, H, T, T) and "decoder_block_N/memory" (B, H, T, S).
    """
    config, outputs = transformer.transformer_config, {"logits": transformer.output}
    for number in range(1, config.encoder_layers + 1):
        name = f"encoder_block_{number}"
        _, outputs[f"{name}/self"] = transformer.get_layer(name).output
    for number in range(1, config.decoder_layers + 1):
        name = f"decoder_block_{number}"
        _, outputs[f"{name}/self"], outputs[f"{name}/memory"] = transformer.get_layer(name).output
    return keras.Model(transformer.input, outputs, name="transformer_with_attention")
