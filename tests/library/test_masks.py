"""Who may attend to whom, and positions that restart in each sentence."""

import numpy as np

from keras_transformer.masks import (
    causal_mask,
    causal_segment_mask,
    first_in_segment,
    last_in_segment,
    neighbourhood_mask,
    positions_in_segment,
    segment_mask,
)
from tests.support.models import as_numpy

PACKED = np.array([[1, 1, 1, 2, 2, 0]], "int32")  # a sentence of three, one of two, one padding


def places(mask):
    """A mask as rows of 1 and 0, one string per query."""
    return ["".join("01"[int(allowed)] for allowed in row) for row in as_numpy(mask)]


def test_a_query_attends_to_its_own_segment_and_padding_attends_to_nothing():
    assert places(segment_mask(PACKED, PACKED)[0]) == ["111000"] * 3 + ["000110"] * 2 + ["000000"]


def test_queries_and_keys_may_come_from_different_sides():
    source, target = np.array([[1, 1, 2, 0]]), np.array([[1, 2, 2, 3, 0]])
    assert places(segment_mask(target, source)[0]) == ["1100", "0010", "0010", "0000", "0000"]


def test_the_causal_mask_is_a_lower_triangle():
    assert places(causal_mask(4)[0]) == ["1000", "1100", "1110", "1111"]


def test_the_decoder_attends_to_its_own_segment_but_not_to_later_positions():
    assert places(causal_segment_mask(PACKED)[0]) == ["100000", "110000", "111000", "000100", "000110", "000000"]


def test_a_neighbourhood_of_three_is_the_word_before_itself_and_the_word_after_in_one_sentence():
    assert places(neighbourhood_mask(PACKED, 3)[0]) == ["110000", "111000", "011000", "000110", "000110", "000000"]
    assert places(neighbourhood_mask(PACKED, 1)[0])[:2] == ["100000", "010000"]


def test_each_row_of_a_batch_has_its_own_mask():
    segments = np.array([[1, 1, 0], [1, 0, 0]])
    assert places(segment_mask(segments, segments)[0]) == ["110", "110", "000"]
    assert places(segment_mask(segments, segments)[1]) == ["100", "000", "000"]


def test_positions_start_again_in_each_segment_and_padding_gets_0():
    assert as_numpy(positions_in_segment(PACKED)).tolist() == [[0, 1, 2, 0, 1, 0]]


def test_a_plain_padded_row_counts_from_0():
    assert as_numpy(positions_in_segment(np.array([[1, 1, 1, 1, 0, 0]]))).tolist() == [[0, 1, 2, 3, 0, 0]]


def test_padding_before_a_sentence_does_not_count():
    assert as_numpy(positions_in_segment(np.array([[0, 0, 1, 1]]))).tolist() == [[0, 0, 0, 1]]


def test_each_segment_has_a_first_and_a_last_position_and_padding_has_none():
    segments = np.array([[0, 1, 1, 1, 2, 0], [1, 2, 3, 3, 0, 0]])
    assert places(first_in_segment(segments)) == ["010010", "111000"]
    assert places(last_in_segment(segments)) == ["000110", "110100"]
