"""Transformers that differ in one field each, in every value of it: what a law about all of them walks."""

import pytest

from keras_transformer.config import (
    ACTIVATIONS,
    DECODER_LAYERS,
    DECODER_STARTS,
    ENCODER_LAYERS,
    GATED_ACTIVATIONS,
    MEANT_FOR,
    NORM_KINDS,
    NORMS,
    POSITIONS,
    SINUSOIDS,
    TransformerConfig,
)
from tests.support.runs import RUN_MODEL

# Every value of a field that has names or truth values, and one or two others of a number.
VALUES = {
    "vocab_size": (RUN_MODEL.vocab_size,),  # of the tokenizer, without which nothing is exported
    "encoder_layers": (1, 2),
    "decoder_layers": (1, 2),
    "d_model": (24,),
    "d_ff": (20,),
    "num_heads": (1, 2),
    "key_dim": (4, 12),
    "value_dim": (4, 12),
    "activation": ("relu", "gelu", "swish", *GATED_ACTIVATIONS, *ACTIVATIONS),
    "norm": NORMS,
    "norm_kind": NORM_KINDS,
    "norm_epsilon": (1e-5, 0.1),
    "positions": POSITIONS,
    "max_positions": (40,),
    "sinusoids": SINUSOIDS,
    "first_position": (2,),
    "relative_buckets": (8,),
    "relative_distance": (20,),
    "encoder_layer": ENCODER_LAYERS,
    "kernel_size": (5,),
    "dilated": (False, True),
    "neighbourhood": (3,),
    "decoder_start": DECODER_STARTS,
    "decoder_layer": DECODER_LAYERS,
    "feed_forward_bias": (True, False),
    "attention_bias": (False, True),
    "scale_scores": (True, False),
    "embedding_norm": (False, True),
    "shared_embeddings": (True, False),
    "tied_logits": (True, False),
    "logits_bias": (False, True),
    "dropout": (0.0, 0.2),
    "label_smoothing": (0.0, 0.3),
    "shift_positions": (0, 9),
}
OFTEN = {"relu", "gelu", "swish", "geglu_tanh"}  # activations that `make check` tries; the others take as long each


def with_value(field: str, value) -> TransformerConfig:
    """RUN_MODEL with this value, and with the value of another field without which it would mean nothing."""
    other = dict([MEANT_FOR[field]]) if field in MEANT_FOR else {}
    return RUN_MODEL.replace(**other, **{field: value})


CASES = {with_value(field, value): f"{field}={value}" for field, values in reversed(VALUES.items()) for value in values}
every_value = pytest.mark.parametrize(
    "config",
    [
        pytest.param(config, id=name, marks=() if config.activation in OFTEN else pytest.mark.slow)
        for config, name in CASES.items()
    ],
)

# What changes the operations of a graph, and not only their widths; of all other fields, one value each at once.
NUMBERS = RUN_MODEL.replace(
    **{"encoder_layers": 2, "decoder_layers": 2, "d_model": 24, "d_ff": 20, "num_heads": 2, "key_dim": 4},
    **{"value_dim": 12, "norm_epsilon": 0.1, "dropout": 0.2, "label_smoothing": 0.3, "shift_positions": 9},
)


def changes_operations(config: TransformerConfig) -> bool:
    names = [field for field, values in VALUES.items() if isinstance(values[0], str | bool) and field != "activation"]
    is_gated = config.activation == "swiglu"  # of the others, LiteRT's functions are compared one by one
    return is_gated or any(getattr(config, name) != getattr(RUN_MODEL, name) for name in names)


every_graph = pytest.mark.parametrize(
    "config",
    [
        pytest.param(NUMBERS, id="numbers"),
        *(pytest.param(config, id=name) for config, name in CASES.items() if changes_operations(config)),
    ],
)
