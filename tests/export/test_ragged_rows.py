"""Ragged rows inside a graph: chosen as TensorFlow chooses them, by a tenth of its operations."""

import pytest
import tensorflow as tf

from export.graph.ragged_rows import firsts, kept, of_values, row_numbers

ROWS = {
    "tokens": [[5, 6, 7], [], [8], [], [9, 9]],
    "ways of phrases": [[[5], [6, 7]], [], [[8, 8, 8]], [], [[], [9]]],
    "empty rows": [[], []],
    "no rows": [],
}


def ragged(name):
    rank = 2 if name == "ways of phrases" else 1
    return tf.ragged.constant(ROWS[name], tf.int32, ragged_rank=rank)


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("is_kept", [lambda place: True, lambda place: False, lambda place: place % 2 == 1])
def test_values_that_are_kept_stay_in_their_rows(name, is_kept):
    rows, places = ragged(name), iter(range(99))
    expected = [[value for value in row if is_kept(next(places))] for row in ROWS[name]]
    mask = tf.constant([is_kept(place) for place in range(sum(map(len, ROWS[name])))], tf.bool)
    found = kept(rows, mask)
    assert found.to_list() == expected and found.row_splits.dtype == rows.row_splits.dtype


def test_the_first_values_of_a_row_are_those_up_to_its_own_limit():
    limits = [2, 0, 5, 1, 1]
    expected = [row[:limit] for row, limit in zip(ROWS["tokens"], limits, strict=True)]
    assert firsts(ragged("tokens"), tf.constant(limits)).to_list() == expected
    assert firsts(ragged("no rows"), tf.zeros([0], tf.int32)).to_list() == []


@pytest.mark.parametrize("name", ROWS)
def test_each_value_has_the_number_of_its_row_and_what_the_row_has(name):
    rows = ragged(name)
    expected = [number for number, row in enumerate(ROWS[name]) for _ in row]
    assert row_numbers(rows).numpy().tolist() == expected
    names = [f"row {number}" for number in range(len(ROWS[name]))]
    found = of_values(tf.constant(names, tf.string), rows)
    assert [each.decode() for each in found.numpy()] == [names[number] for number in expected]


def test_a_mask_of_rows_takes_a_tenth_of_the_operations_of_tensorflow():
    def operations(choose):
        rows = tf.RaggedTensorSpec([None, None], tf.int32)
        graph = tf.function(choose, [rows, tf.TensorSpec([None], tf.bool)], autograph=False)
        found = graph.get_concrete_function().graph.as_graph_def()
        return len(found.node) + sum(len(function.node_def) for function in found.library.function)

    ours = operations(lambda rows, of_rows: kept(rows, of_values(of_rows, rows)))
    theirs = operations(
        lambda rows, of_rows: tf.ragged.boolean_mask(rows, tf.ones_like(rows, tf.bool) & of_rows[:, tf.newaxis])
    )
    assert 10 * ours < theirs
