"""The weights of a Transformer by the names of Hugging Face's MarianMTModel, in a file that needs no package to write.

The names and the order of channels are those of the table with which models are imported, read backwards.
"""

import json
import pathlib
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.layers.embedding import sinusoidal_encoding
from keras_transformer.models.imported.names import as_huggingface, order_of_channels, weights_of

from ..versions import ExportError

POSITIONS = 1024  # rows in the table of positions: MarianMTModel reads and writes no longer texts
EPSILON = 1e-5  # of every LayerNorm in MarianMTModel, which has no setting for it
HAS = {"norm": "post", "positions": "sinusoidal", "encoder_layer": "self_attention", "decoder_layer": "self_attention"}
ACTIVATIONS = ("relu", "gelu", "silu", "swish")


def refuse_other_models(model: keras.Model) -> None:
    """Raise ExportError, which names the field of model.json, for a model that MarianMTModel cannot express."""
    config = model.model_config
    if not isinstance(config, TransformerConfig):
        refuse("kind", config.kind, "transformer")
    for field, value in HAS.items():
        if getattr(config, field) != value:
            refuse(field, getattr(config, field), value)
    for field, width in (("key_dim", config.d_k), ("value_dim", config.d_v)):
        if width * config.num_heads != config.d_model:
            refuse(field, width, f"d_model / num_heads, {config.d_model} / {config.num_heads},")
    if config.activation not in ACTIVATIONS:
        refuse("activation", config.activation, ", ".join(ACTIVATIONS))


def refuse(field: str, value: object, expected: str) -> None:
    raise ExportError(
        f"model.json has the {field} {value!r}; Hugging Face's MarianMTModel has {expected} alone. Export it with "
        "--format saved_model."
    )


def arrays_of(model: keras.Model) -> dict[str, np.ndarray]:
    """Return the arrays of MarianMTModel by their names. A bias that the model lacks is zeros.

    MarianMTModel computes the paper's sinusoids, unless the file holds a table: so tensor2tensor's are written.
    """
    config = model.model_config
    ours = {weight.path: np.asarray(keras.ops.convert_to_numpy(weight.value), np.float32) for weight in model.weights}
    arrays = {}
    for weight in weights_of(config):
        array = ours.pop(weight.ours, None)
        if array is None:
            array = np.zeros(weight.shape(config), np.float32)
        arrays[weight.huggingface] = as_huggingface(weight, array)
    if ours:
        raise ExportError(f"Hugging Face's MarianMTModel has no place for the weights {', '.join(sorted(ours))}.")
    arrays["final_logits_bias"] = arrays["final_logits_bias"].reshape(1, -1)
    if config.sinusoids != "paper":
        table = np.asarray(sinusoidal_encoding(np.arange(POSITIONS), config.d_model, config.sinusoids), np.float32)
        table = table[:, np.argsort(order_of_channels(config.d_model))]
        arrays |= {f"model.{side}.embed_positions.weight": table for side in ("encoder", "decoder")}
    return arrays


def write_safetensors(path: pathlib.Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as safetensors: the length of the header in 8 bytes, the header in JSON, and float32 numbers.

    The format: github.com/huggingface/safetensors, README.md, "Format".
    """
    header: dict[str, dict[str, Any]] = {"__metadata__": {"format": "pt"}}
    start = 0
    for name, array in arrays.items():
        end = start + 4 * array.size
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that the numbers begin at a multiple of 8
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in arrays.values():
            file.write(np.ascontiguousarray(array, "<f4").tobytes())
