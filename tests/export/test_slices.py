"""Slices: how many lines are computed at once, and in which order."""

import pytest
import tensorflow as tf

from export.graph.slices import SLICE_ROWS, SLICE_TOKENS, in_slices, slice_rows


@pytest.mark.parametrize(
    "lengths, rows",
    [
        ([1] * SLICE_ROWS, SLICE_ROWS),
        ([10] * 31 + [512], 31),
        ([SLICE_TOKENS + 1, SLICE_TOKENS + 2], 1),
        ([SLICE_TOKENS // 2] * 3, 2),
    ],
)
def test_a_slice_is_as_many_lines_as_its_positions_allow(lengths, rows):
    assert slice_rows(tf.constant(lengths)).numpy() == rows


@pytest.mark.slow
def test_slices_take_every_item_with_a_length_once_and_short_ones_first():
    taken = []

    def run(indices):
        tf.py_function(lambda numbers: taken.append(numbers.numpy().tolist()), [indices], [])
        return {"n": tf.strings.as_string(indices)}

    lengths = tf.constant([7, 0, 600, 3, 0, 600, 1_400])
    found = tf.function(lambda: in_slices(lengths, run, {"n": tf.fill([7], "-")}))()
    assert taken == [[3, 0, 2], [5], [6]]  # 3 * 600 positions fit into one slice, 2 * 1,400 do not
    assert found["n"].numpy().tolist() == [b"0", b"-", b"2", b"3", b"-", b"5", b"6"]
