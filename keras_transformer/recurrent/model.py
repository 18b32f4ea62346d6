"""Which layer feeds which: the recurrent encoder-decoder, assembled with the functional API."""

import keras

from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.recurrent import FinalStates, Recurrent
from keras_transformer.model import embedding_layers
from keras_transformer.recurrent.config import RecurrentConfig
from keras_transformer.recurrent.decoder import RecurrentDecoder
from keras_transformer.translation_model import INPUTS, TranslationModel, policy_of


@keras.saving.register_keras_serializable("keras_transformer")
class RecurrentModel(TranslationModel):
    """A recurrent encoder-decoder with attention or without, from a RecurrentConfig.

    Args, inputs and output are those of Transformer: the same four inputs, and logits (B, T, vocab_size).

    The graph is flat: `get_layer` finds every layer by its name. The names are "encoder_layer_1", "encoder_layer_2" and
    so on, "decoder", and "embedding" ("source_embedding", "target_embedding" and "logits" if embeddings are not
    shared).
    """

    config_class = RecurrentConfig
    model_config: RecurrentConfig

    def __init__(self, config: RecurrentConfig, dtype: str | None = None, name: str = "recurrent_model", **kwargs):
        self.check_config(config)
        policy = policy_of(dtype)
        super().__init__(config, policy, *connect(config, policy), name=name, **kwargs)


def connect(config: RecurrentConfig, dtype: keras.DTypePolicy) -> tuple:
    """Wire the layers. Returns the dict of symbolic inputs and the symbolic logits."""
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in INPUTS}
    source_segments, target_segments = inputs["source_segments"], inputs["target_segments"]
    source_embedding, target_embedding, logits_layer = embedding_layers(config, dtype)

    memory, states_of_layers = source_embedding(inputs["source_ids"]), []
    for number in range(1, config.encoder_layers + 1):
        memory = Dropout(config.dropout, dtype=dtype, name=f"encoder_dropout_{number}")(memory)
        encode = Recurrent(config.units, config.cell, config.direction, dtype=dtype, name=f"encoder_layer_{number}")
        parts = encode(memory, source_segments)
        memory = parts[0]
        states_of_layers.append(parts)

    final_states = FinalStates(config.direction, dtype=dtype, name="final_states")
    first = [
        final_states(part, target_segments, source_segments) for part in parts_of_decoder(states_of_layers, config)
    ]
    embedded = target_embedding(inputs["target_ids"])
    embedded = Dropout(config.dropout, dtype=dtype, name="decoder_dropout")(embedded)
    decode = RecurrentDecoder(
        config.d_model,
        config.cell,
        config.decoder_layers,
        config.attention,
        config.feeds_input,
        config.dropout,
        dtype=dtype,
        name="decoder",
    )
    read, _ = decode(embedded, target_segments, memory, source_segments, first)
    read = Dropout(config.dropout, dtype=dtype, name="logits_dropout")(read)
    return inputs, logits_layer(read, reverse=True)


def parts_of_decoder(states_of_layers: list, config: RecurrentConfig) -> list:
    """Return the parts of the encoder's states from which those of the decoder's layers begin, layer by layer.

    The last layer begins from the last one, the last but one from the last but one, and so on; further layers of the
    decoder begin from the first one.
    """
    numbers = range(config.encoder_layers - config.decoder_layers, config.encoder_layers)
    return [part for number in numbers for part in states_of_layers[max(number, 0)]]


def encoder(model: RecurrentModel) -> keras.Model:
    """The encoder alone, with the same weights: what the decoder begins with.

    source_ids, source_segments (B, S) and target_segments (B, T) -> a list of memory (B, S, d_model) and, per part of
    the state of each layer of the decoder, (B, T, d_model).
    """
    _, _, memory, _, *first = model.get_layer("decoder").input
    inputs = {name: model.input[name] for name in ("source_ids", "source_segments", "target_segments")}
    return keras.Model(inputs, [memory, *first], name="encoder")


def with_attention(model: RecurrentModel) -> keras.Model:
    """The same weights and graph, with the attention weights among the outputs.

    Returns a model whose output is a dict: "logits" (B, T, vocab_size) and, if the decoder attends to the source,
    "decoder_block_1/memory" (B, 1, T, S): one head, under the name that a Transformer of one layer gives it.
    """
    outputs = {"logits": model.output}
    if model.model_config.attention != "none":
        _, outputs["decoder_block_1/memory"] = model.get_layer("decoder").output
    return keras.Model(model.input, outputs, name="recurrent_with_attention")
