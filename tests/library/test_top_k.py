"""The k largest of many numbers are exact, however many there are."""

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_transformer.layers.gather import at_columns, rows_at
from keras_transformer.search.top_k import block_width, top_k
from tests.support.models import as_numpy, normal

COLUMNS = [6, 63, 64, 1_000, 6_000, 6_007, 32_000]  # less than a block, many blocks, and one that has to be filled up


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("k", [1, 4])
def test_the_largest_are_those_of_sorting(columns, k):
    scores = normal(5, columns) * 30.0
    largest, places = map(as_numpy, top_k(scores, k))
    np.testing.assert_array_equal(largest, -np.sort(-scores.astype("float64"), axis=1)[:, :k])
    np.testing.assert_array_equal(np.take_along_axis(scores, places.astype(int), axis=1), largest)


@pytest.mark.parametrize("columns", COLUMNS)
def test_the_largest_may_all_lie_in_one_block(columns):
    scores = normal(3, columns)
    scores[:, -4:] += 100.0
    _, places = top_k(scores, 4)
    assert (np.sort(as_numpy(places), axis=1) == np.arange(columns - 4, columns)).all()


def test_a_graph_need_not_know_the_number_of_columns():
    @tf.function(input_signature=[tf.TensorSpec((None, None))], autograph=False)
    def largest(scores):
        return top_k(scores, 4)

    for columns in (64, 512, 576, 6_400):
        scores = normal(5, columns)
        for found, expected in zip(largest(scores), top_k(scores, 4), strict=True):
            np.testing.assert_array_equal(as_numpy(found), as_numpy(expected))


def test_all_of_a_row_and_equal_numbers():
    largest, places = top_k(np.zeros((2, 640), "float32"), 5)
    assert not as_numpy(largest).any() and all(len(set(row)) == 5 for row in as_numpy(places))
    _, places = top_k(np.array([[1.0, 3.0, 2.0]], "float32"), 3)
    assert list(as_numpy(places)[0]) == [1, 2, 0]


def test_numbers_far_below_zero_are_numbers():
    scores = np.full((1, 6_007), -1e30, "float32")
    scores[0, 6_006] = -1e29
    assert as_numpy(top_k(scores, 1)[1])[0, 0] == 6_006


def test_a_wide_beam_takes_no_memory_of_its_third_power():
    """The largest array of (N, V) scores at k = 200 of 40,000 columns has a block of 64 numbers for each of N * k."""

    @tf.function(input_signature=[tf.TensorSpec((3, 30_016))], autograph=False)
    def largest(scores):
        return top_k(scores, 200)

    shapes = [
        output.shape for node in largest.get_concrete_function().graph.get_operations() for output in node.outputs
    ]
    assert max(shape.num_elements() for shape in shapes) == 3 * 30_016


@pytest.mark.parametrize("columns, width", [(32_000, 64), (6_000, 80), (10_000, 80), (6_007, 64), (37_000, 64)])
def test_a_width_divides_the_columns_if_one_does(columns, width):
    assert block_width(columns) == width


def test_rows_come_in_the_shape_of_their_numbers():
    items = np.arange(12, dtype="int32").reshape(4, 3)
    found = rows_at(ops.convert_to_tensor(items), ops.convert_to_tensor([[3, 0], [1, 1]], "int32"))
    np.testing.assert_array_equal(as_numpy(found), items[[[3, 0], [1, 1]]])


def test_each_row_is_read_at_its_own_columns():
    values, columns = np.array([[1, 2, 3], [4, 5, 6]], "int32"), np.array([[2, 0], [1, 1]], "int32")
    assert as_numpy(at_columns(values, columns)).tolist() == [[3, 1], [5, 5]]
