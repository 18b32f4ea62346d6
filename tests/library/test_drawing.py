"""Drawing a token: which ones top k and top p leave, and which one stands at a height of their sum."""

import numpy as np
import pytest

from keras_transformer.search.rules.drawing import Drawing, column_at
from tests.support.models import as_numpy


@pytest.mark.parametrize(
    "top_k, top_p, kept", [(0, 1.0, 5), (3, 1.0, 3), (0, 0.7, 4), (4, 0.5, 3), (1, 1.0, 1), (0, 0, 1)]
)
def test_of_equal_tokens_as_many_are_kept_as_asked(top_k, top_p, kept):
    """Probabilities 0.2 each: the first ones stay. A token that cannot come is not among them."""
    scaled = np.log(np.array([[[0.2, 0.2, 0.2, 0.2, 0.2, 1e-30]]], "float32"))
    drawing = Drawing(
        np.ones(1, "float32"), np.array([top_k], "int32"), np.array([top_p], "float32"), np.zeros(1, "int32")
    )
    is_kept = as_numpy(drawing.is_among_best(scaled))[0, 0, :5]
    np.testing.assert_array_equal(is_kept, np.arange(5) < kept)


@pytest.mark.parametrize("columns", [1, 6, 64, 200, 6000, 10007])
def test_the_column_at_a_height_is_that_of_exact_sums(columns):
    """Where rounded sums may decide otherwise, it is the column beside it; one without weight never is."""
    generator = np.random.default_rng(columns)
    weights = generator.exponential(size=(50, columns)).astype("float32") ** 4
    weights[:, generator.random(columns) < 0.3] = 0.0
    weights[:, columns // 2] = 1.0
    heights = np.linspace(0, 1, 50, dtype="float32")
    found = as_numpy(column_at(weights, heights[:, np.newaxis])).astype(int)
    sums = np.cumsum(weights, axis=1, dtype="float64")
    for column, of_row, total, height in zip(found, weights, sums, heights, strict=True):
        assert of_row[column] > 0
        below, above = (total[column] - of_row[column]) / total[-1], total[column] / total[-1]
        assert below - 1e-5 <= height <= above + 1e-5
