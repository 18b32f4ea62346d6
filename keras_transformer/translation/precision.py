"""The precision in which a model translates, scores and explains: the same for all three."""

import logging

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
    for weight, value in zip(converted.weights, transformer.weights, strict=True):
        weight.assign(value)
    return converted
