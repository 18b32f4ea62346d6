"""Which models another runtime can express: its values per field of TransformerConfig; others are refused by name."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

from keras_transformer.config import TransformerConfig
from keras_transformer.model_config import BaseModelConfig

from .versions import ExportError

SIZES = dict.fromkeys(  # what every runtime has with any value, and what decides nothing after training
    ("vocab_size", "encoder_layers", "decoder_layers", "d_model", "d_ff", "num_heads", "key_dim", "value_dim")
    + ("max_positions", "norm_epsilon", "feed_forward_bias", "attention_bias", "shared_embeddings", "logits_bias")
    + ("dropout", "label_smoothing", "shift_positions")
)


def expressible(config: BaseModelConfig, runtime: str, has: Mapping[str, Collection | None]) -> TransformerConfig:
    """Return the configuration of a model that `runtime` can express.

    has: the values that it has for a field; None for any. Of a field that is missing there, it has the default alone: a
    field that is new to TransformerConfig is refused until the exporter knows what to write. Raises ExportError, which
    names the field of model.json.
    """
    if not isinstance(config, TransformerConfig):
        refuse("kind", config.kind, runtime, TransformerConfig.kind)
    missing = {}  # from a field to what the runtime has in place of its value
    for field in config.fields():
        values = has.get(field, (getattr(type(config), field),))
        if values is not None and getattr(config, field) not in values:
            missing[field] = ", ".join(map(str, values))
    if missing:
        field, *others = missing
        refuse(field, getattr(config, field), runtime, missing[field], others)
    return config


def refuse(field: str, value: Any, runtime: str, expected: str, others: Sequence[str] = ()) -> NoReturn:
    """Raise ExportError for a value in model.json; `others` are further fields whose values the runtime lacks."""
    more = f", and lacks its {', '.join(others)} too" if others else ""
    raise ExportError(
        f"model.json has the {field} {value!r}; {runtime} has {expected} alone{more}. Export it with --format "
        "saved_model or litert."
    )
