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
from keras_transformer.model_config import BaseModelConfig
from keras_transformer.models.imported.names import as_huggingface, order_of_channels, weights_of

from ..expressible import SIZES, expressible, refuse
from ..versions import ExportError

POSITIONS = 1024  # rows in the table of positions: MarianMTModel reads and writes no longer texts
EPSILON = 1e-5  # of every LayerNorm in MarianMTModel, which has no setting for it
HAS = SIZES | {"activation": ("relu", "gelu", "silu", "swish"), "sinusoids": ("paper", "tensor2tensor")}
RUNTIME = "Hugging Face's MarianMTModel"


def refuse_other_models(config: BaseModelConfig) -> None:
    """Raise ExportError, which names the field of model.json, for a model that MarianMTModel cannot express."""
    shape = expressible(config, RUNTIME, HAS)
    if shape.norm_epsilon > 10 * EPSILON:  # by less, as by the default 1e-6, a score differs by about 1e-4
        refuse("norm_epsilon", shape.norm_epsilon, RUNTIME, str(EPSILON))
    refuse_other_widths(shape, RUNTIME)


def refuse_other_widths(config: TransformerConfig, runtime: str) -> None:
    """Raise ExportError for heads of another width than d_model / num_heads."""
    for field, width in (("key_dim", config.d_k), ("value_dim", config.d_v)):
        if width * config.num_heads != config.d_model:
            refuse(field, width, runtime, f"d_model / num_heads, {config.d_model} / {config.num_heads},")


def float32_arrays(model: keras.Model) -> dict[str, np.ndarray]:
    """Return the weights of a model by their paths."""
    return {weight.path: np.asarray(keras.ops.convert_to_numpy(weight.value), np.float32) for weight in model.weights}


def arrays_of(model: keras.Model) -> dict[str, np.ndarray]:
    """Return the arrays of MarianMTModel by their names. A bias that the model lacks is zeros.

    MarianMTModel computes the paper's sinusoids, unless the file holds a table: so tensor2tensor's are written.
    """
    config, ours = model.model_config, float32_arrays(model)
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
