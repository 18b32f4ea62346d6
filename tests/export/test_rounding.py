"""Embeddings that are read as 8-bit integers."""

import numpy as np

from export.litert.rounding import read_as_integers
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
