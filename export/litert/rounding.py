"""Embeddings that are read as 8-bit integers.

The converter rounds the weights of products alone. A matrix of which rows are read would be made floats again in each
call, all of it, and be a part of the state of the search's loop. The same goes for the rows that a shortlist chooses.
"""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_transformer.layers.embedding import OutputWeights, TokenEmbedding
from keras_transformer.layers.gather import rows_at

LARGEST = 127  # of a rounded number, on both sides of 0


@contextlib.contextmanager
def read_as_integers(model: keras.Model) -> Iterator[None]:
    """Let the embeddings of a model read rounded rows: q (V, d_model) int8 and s (V, 1), so that E is about s q."""
    layers = [layer for layer in model.layers if isinstance(layer, TokenEmbedding)]
    for layer in layers:
        integers, scales = rounded(layer)
        layer.__dict__["embed"] = functools.partial(rounded_rows, integers, scales * np.float32(layer.d_model**0.5))
        layer.__dict__["output_weights"] = functools.partial(weights_of_rounded, layer, integers, scales)
    try:
        yield
    finally:
        for layer in layers:
            del layer.__dict__["embed"], layer.__dict__["output_weights"]


def rounded(layer: TokenEmbedding) -> tuple[np.ndarray, np.ndarray]:
    """Return the embeddings as int8 (V, d_model), and float32 (V, 1), by which a row is to be multiplied.

    It computes as the converter does, so that the weights of logits, if they are the same matrix, become the same
    integers, which a file holds once.
    """
    matrix = ops.convert_to_numpy(layer.matrix).astype(np.float32)
    scales = np.maximum(np.abs(matrix).max(axis=1, keepdims=True), np.float32(1e-30)) / np.float32(LARGEST)
    return np.round(matrix * (np.float32(1) / scales)).astype(np.int8), scales


def rounded_rows(integers: np.ndarray, scales: np.ndarray, ids) -> Any:
    """Return the rows with these numbers as floats: ids (...) -> float32 (..., d_model)."""
    return ops.cast(rows_at(integers, ids), "float32") * rows_at(scales, ids)


def weights_of_rounded(layer: TokenEmbedding, integers: np.ndarray, scales: np.ndarray, tokens=None) -> OutputWeights:
    """Return what `TokenEmbedding.output_weights` returns; those of chosen tokens are made of rounded rows."""
    weights = TokenEmbedding.output_weights(layer, tokens)
    if tokens is None:
        return weights
    return weights._replace(kernel=ops.swapaxes(rounded_rows(integers, scales, tokens), -1, -2))
