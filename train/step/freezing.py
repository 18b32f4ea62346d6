"""Layers frozen by name: weights that training leaves as they are."""

import fnmatch
import itertools
import logging
import math
from collections.abc import Sequence

import keras

from keras_transformer.ground.errors import ConfigError
from keras_transformer.model_config import BaseModelConfig
from keras_transformer.runs.kinds import build_model

log = logging.getLogger("train")


def freeze(model: keras.Model, patterns: Sequence[str]) -> None:
    """Freeze the weights of every layer that one of the patterns names; call it before the optimizer is built.

    A pattern is the name of a layer, of a layer inside it, or of a weight, with the wildcards of a shell: "embedding",
    "encoder*", "decoder_block_1/self_attention". A frozen weight gets no gradient and has no state in the optimizer.
    Raises ConfigError for a pattern that names nothing, and if no weight would be left to train.
    """
    for pattern in patterns:
        if not any(is_named(weight.path, pattern) for weight in model.weights):
            raise ConfigError(
                f"training.frozen names {pattern!r}, but there is no such layer or weight. The layers are "
                f"{', '.join(layers_of(model))}; a part of one is named {model.weights[-1].path.rpartition('/')[0]}, "
                "for example, and * stands for any characters."
            )
    frozen = [weight for weight in model.weights if any(is_named(weight.path, pattern) for pattern in patterns)]
    if len(frozen) == len(model.weights):
        raise ConfigError(f"training.frozen is {list(patterns)}, which freezes every weight: nothing is left to train.")
    for weight in frozen:
        weight.trainable = False
    if frozen:
        count = sum(math.prod(weight.shape) for weight in frozen)
        log.info("frozen: %s of %s parameters", f"{count:,}", f"{model.count_params():,}")


def check_frozen(config: BaseModelConfig, patterns: Sequence[str]) -> None:
    """Raises ConfigError, as `freeze` does, for patterns that do not fit the model of a configuration."""
    if patterns:
        freeze(build_model(config), patterns)


def is_named(path: str, pattern: str) -> bool:
    """Return whether the pattern matches a weight's path, "layer/sublayer/weight", or the beginning of it up to a /."""
    beginnings = itertools.accumulate(path.split("/"), "{}/{}".format)
    return any(fnmatch.fnmatchcase(beginning, pattern) for beginning in beginnings)


def layers_of(model: keras.Model) -> list[str]:
    """Return the names of the layers that have weights."""
    return list(dict.fromkeys(weight.path.partition("/")[0] for weight in model.weights))
