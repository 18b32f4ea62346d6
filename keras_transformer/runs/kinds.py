"""The kinds of model, and what belongs to each: how one is read, built and given its decoder.

Models are imported when a function first needs them, so that configurations can be read without Keras.
"""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.notations import REGISTERED_NAME
from keras_transformer.model_config import FIRST_KIND, KIND, BaseModelConfig, parse_json, read_config
from keras_transformer.recurrent.config import RecurrentConfig

if TYPE_CHECKING:
    import keras

CONFIGS = {config.kind: config for config in (TransformerConfig, RecurrentConfig)}
KINDS_OF_CLASSES = {  # as Keras registers the models
    "keras_transformer>Transformer": TransformerConfig.kind,
    "keras_transformer>RecurrentModel": RecurrentConfig.kind,
}


class Kind(NamedTuple):
    """A model has `model_config`, `precision` and the four inputs of a Transformer, whatever its kind."""

    model: Callable  # from a configuration and the name of a dtype policy to the model
    decoder: Callable  # from a model to what a search calls: see IncrementalDecoder
    with_attention: Callable  # from a model to the same with its attention weights: see model.with_attention


def kind_of(config: BaseModelConfig) -> Kind:
    """Return what belongs to the kind of this configuration."""
    if isinstance(config, RecurrentConfig):
        from keras_transformer.recurrent.model import RecurrentModel
        from keras_transformer.recurrent.model import with_attention as with_recurrent_attention
        from keras_transformer.recurrent.step import RecurrentIncrementalDecoder

        return Kind(RecurrentModel, RecurrentIncrementalDecoder, with_recurrent_attention)
    from keras_transformer.model import Transformer, with_attention
    from keras_transformer.search.step import IncrementalDecoder

    return Kind(Transformer, IncrementalDecoder, with_attention)


def build_model(config: BaseModelConfig, dtype: str | None = None) -> "keras.Model":
    """Build the model of a configuration, with random weights; `dtype` as for Transformer."""
    return kind_of(config).model(config, dtype=dtype)


def config_of(model: "keras.Model") -> BaseModelConfig:
    """Return the configuration of a Transformer or a RecurrentModel.

    A clone of one by `keras.models.clone_model` gets the attributes that it lacks. Raises TypeError for anything else,
    a model with the layers of one of them and another graph included, and ConfigError if `model.quantize` has replaced
    weights.
    """
    from keras_transformer.layers.composite import quantized_part

    if not hasattr(model, "model_config"):
        complete_clone(model)
    config = getattr(model, "model_config", None)
    if not isinstance(config, BaseModelConfig):
        raise TypeError(
            f"The model must be a Transformer or a RecurrentModel. Received: {model!r}. If with_attention returned it, "
            "give the model that with_attention was called with: it has the same weights."
        )
    if part := quantized_part(model):
        raise ConfigError(
            f"The weights must be floats, but {part.path} is {part.quantization_mode}, as after `quantize`: give the "
            "model as it was before. `keras-transformer export --format ctranslate2 --quantization int8` searches with "
            "integers."
        )
    return config


def complete_clone(model: Any) -> None:
    """Give a clone of a model by `keras.models.clone_model` the attributes of its original that Keras left out.

    Raises TypeError if the model has layers of one of ours but computes something else.
    """
    from keras_transformer.translation_model import config_in_clone, difference_in_graph

    if values := config_in_clone(model):
        config = CONFIGS[values[KIND]].from_values(values)
        precision = next(layer.dtype_policy.name for layer in model.layers if layer.weights)
        original = build_model(config, precision)
        if difference := difference_in_graph(model, original):
            raise TypeError(
                f"The model has layers of a {type(original).__name__} but is none: {difference}. Give the "
                f"{type(original).__name__}, or its clone by `keras.models.clone_model`."
            )
        model.model_config = model.transformer_config = config
        model.precision = precision


def incremental_decoder(model: "keras.Model") -> Any:
    """Return the decoder of a model as a function of (state, token)."""
    return kind_of(config_of(model)).decoder(model)


def joint_decoder(models: "Sequence[keras.Model]") -> Any:
    """Return the decoder of a model, or of several together, which predicts the mean of their probabilities.

    Raises ConfigError if there is no model.
    """
    from keras_transformer.search.ensemble import EnsembleDecoder

    if not models:
        raise ConfigError("There is no model to translate with: give one or more.")
    decoders = [incremental_decoder(model) for model in models]
    return decoders[0] if len(decoders) == 1 else EnsembleDecoder(decoders)


def with_attention(model: "keras.Model") -> "keras.Model":
    """Return the same weights and graph, with the attention weights among the outputs: see model.with_attention.

    Of a RecurrentModel the name is "decoder_block_1/memory", (B, 1, T, S), if it attends.
    Raises TypeError for a model of another kind.
    """
    return kind_of(config_of(model)).with_attention(model)


def load_model_config(path: str | os.PathLike) -> BaseModelConfig:
    """Read the model.json of a run, or the config.json of a preset, of any kind.

    Raises ConfigError, naming the file, if it cannot be read, is damaged, or is of a model of another library.
    """

    def parse(text: str) -> BaseModelConfig:
        values = parse_json(text)
        if REGISTERED_NAME in values:
            values = values_in_preset(values)
        kind = values.get(KIND, FIRST_KIND)
        if not isinstance(kind, str) or kind not in CONFIGS:
            raise ConfigError(f"its kind is {kind!r}; this version knows {', '.join(CONFIGS)}.")
        return CONFIGS[kind].from_values(values)

    return read_config(path, parse)


def values_in_preset(serialized: dict[str, Any]) -> dict[str, Any]:
    """Return what model.json would hold of a model that Keras serialized.

    Keras' own `deserialize_keras_object` would import whatever module a stranger's file names. Raises ConfigError for a
    model of another library.
    """
    name, config = serialized[REGISTERED_NAME], serialized.get("config")
    if not isinstance(name, str) or name not in KINDS_OF_CLASSES:
        raise ConfigError(f"its class is {name!r}; this version knows {', '.join(KINDS_OF_CLASSES)}.")
    values = config.get("config") if isinstance(config, dict) else None
    if not isinstance(values, dict):
        raise ConfigError(f"it has no configuration of a {name.partition('>')[2]}.")
    return {**values, KIND: KINDS_OF_CLASSES[name]}
