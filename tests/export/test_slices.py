"""Slices: how many lines are computed at once, and in which order."""

import pytest
import tensorflow as tf

from export.graph.slices import SLICE_ROWS, SLICE_TOKENS, first_bytes, in_slices, padded, slice_rows, with_end
from keras_transformer.ground.tokens import EOS, PAD


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


def test_more_lines_than_a_slice_has_are_several_slices_and_one_without_a_length_is_in_none():
    taken = []

    def run(indices):
        taken.append(indices.numpy().tolist())
        return {"n": -indices}

    found = in_slices(tf.constant([1] * 129 + [0]), run, {"n": tf.fill([130], 7)})["n"]
    assert [len(indices) for indices in taken] == [64, 64, 1] and sum(taken, []) == list(range(129))
    assert found.numpy().tolist() == [*range(0, -129, -1), 7]


@pytest.mark.parametrize(
    ("most", "cut"), [(5, "a\u00e9b\u00e9"[:3]), (6, "a\u00e9b\u00e9"), (7, "a\u00e9b\u00e9"), (2, "a"), (0, "")]
)
def test_a_cut_divides_no_character(most, cut):
    assert first_bytes(tf.constant(["a\u00e9b\u00e9"]), most).numpy()[0].decode() == cut


def test_bytes_that_are_no_text_stay_in_a_line_that_is_not_cut():
    assert first_bytes(tf.constant([b"a\xff", b"a\xffbc"]), 2).numpy().tolist() == [b"a\xff", b"a"]


def test_rows_end_in_eos_and_are_padded_to_the_longest_which_has_a_column_at_least():
    rows = with_end(tf.ragged.constant([[5, 6], []], dtype=tf.int32))
    assert padded(rows).numpy().tolist() == [[5, 6, EOS], [EOS, PAD, PAD]]
    assert padded(tf.ragged.constant([[], []], dtype=tf.int32)).numpy().tolist() == [[PAD], [PAD]]
