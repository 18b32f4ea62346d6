"""Embeddings that are read as 8-bit integers."""

import types

import keras
import numpy as np

from export.litert.rounding import read_as_integers, rounded
from tests.support.models import as_numpy, lively_transformer


def test_a_row_is_read_to_half_a_step_of_its_own_grid_of_254_steps_and_as_before_afterwards():
    model = lively_transformer()
    embedding = model.get_layer("source_embedding")
    ids = np.arange(embedding.vocab_size).reshape(1, -1)
    exact = as_numpy(embedding(ids))[0]
    with read_as_integers(model):
        read = as_numpy(embedding(ids))[0]
    steps = np.abs(exact).max(axis=1, keepdims=True) / 127
    assert 0 < np.abs(read - exact).max() and (np.abs(read - exact) <= 0.5001 * steps).all()
    assert np.allclose(np.abs(read).max(axis=1, keepdims=True), 127 * steps)
    assert (as_numpy(embedding(ids))[0] == exact).all()


def test_the_logits_of_chosen_pieces_are_of_rounded_rows_and_those_of_all_are_as_they_were():
    model = lively_transformer()
    embedding = model.get_layer("target_embedding")
    tokens = np.array([[5, 2, 9], [7, 7, 4]], np.int32)
    exact, chosen = (as_numpy(embedding.output_weights(each).kernel) for each in (None, tokens))
    with read_as_integers(model):
        all_of_them, rows = (as_numpy(embedding.output_weights(each).kernel) for each in (None, tokens))
    assert (all_of_them == exact).all() and rows.shape == chosen.shape
    steps = np.abs(chosen).max(axis=-2, keepdims=True) / 127
    assert 0 < np.abs(rows - chosen).max() and (np.abs(rows - chosen) <= 0.5001 * steps).all()


def test_the_largest_number_of_a_row_is_127_and_a_row_of_zeros_stays_zeros():
    matrix = keras.ops.convert_to_tensor([[0.5, -2.0, 1.0], [0.0, 0.0, 0.0]])
    with np.errstate(all="raise"):
        integers, scales = rounded(types.SimpleNamespace(matrix=matrix))
    assert integers.tolist() == [[32, -127, 64], [0, 0, 0]] and integers.dtype == np.int8
    assert np.isfinite(scales).all() and scales[0, 0] == np.float32(2) / np.float32(127)
