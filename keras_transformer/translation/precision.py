"""The precision in which a model translates, scores and explains: the same for all three."""

import logging
from typing import Any

import keras

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.machine import has_bfloat16_products
from keras_transformer.runs.kinds import build_model

log = logging.getLogger("keras_transformer")

PRECISIONS = ("float32", "bfloat16")


def in_precision(transformer: keras.Model, precision: str | None) -> keras.Model:
    """Return the transformer if it has this precision, else a copy that has it: "float32" or "bfloat16".

    None means the precision that it has.

    Raises ConfigError for any other.
    """
    if precision in (None, transformer.precision):
        return transformer
    if precision not in PRECISIONS:
        raise ConfigError(f"precision is {precision!r}; it must be one of {', '.join(PRECISIONS)}.")
    if precision == "bfloat16" and not has_bfloat16_products():
        log.warning("this processor has no instructions for bfloat16 products: float32 will be faster")
    converted = build_model(transformer.model_config, dtype=precision)
    for layer in converted.layers:
        copy_weights(transformer.get_layer(layer.name), layer)
    return converted


def copy_weights(source: keras.layers.Layer, target: keras.layers.Layer) -> None:
    """Give a layer and its parts the weights of another of the same configuration, whose LoRA is merged into them."""
    for part, copy in zip(source._flatten_layers(), target._flatten_layers(), strict=True):
        own: dict[str, Any] = {}
        part.save_own_variables(own)  # `part.weights` would also have what LoRA adds
        copy.load_own_variables(own)
