"""Rows and columns are read by their numbers."""

import numpy as np
from keras import ops

from keras_transformer.layers.gather import at_columns, rows_at
from tests.support.models import as_numpy


def test_rows_come_in_the_shape_of_their_numbers():
    items = np.arange(12, dtype="int32").reshape(4, 3)
    found = rows_at(ops.convert_to_tensor(items), ops.convert_to_tensor([[3, 0], [1, 1]], "int32"))
    np.testing.assert_array_equal(as_numpy(found), items[[[3, 0], [1, 1]]])


def test_each_row_is_read_at_its_own_columns():
    values, columns = np.array([[1, 2, 3], [4, 5, 6]], "int32"), np.array([[2, 0], [1, 1]], "int32")
    assert as_numpy(at_columns(values, columns)).tolist() == [[3, 1], [5, 5]]
