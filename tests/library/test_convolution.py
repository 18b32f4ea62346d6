"""Convolution over positions: a kernel that can be checked in the head, Keras' own convolution, packed sentences."""

import keras
import numpy as np
import pytest

from keras_transformer.layers.convolution import SegmentConvolution, neighbours
from tests.support.models import as_numpy, assert_close, normal, randomise

ONE_SENTENCE = np.ones((2, 9), "int32")


def test_neighbours_stand_side_by_side_with_zeros_beyond_the_sentence():
    states = np.array([[[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]]])
    segments = np.array([[1, 1, 1, 2, 2, 0]])
    expected = [[0, 1, 2], [1, 2, 3], [2, 3, 0], [0, 4, 5], [4, 5, 0], [0, 0, 0]]
    assert_close(neighbours(states, segments, (-1, 0, 1))[0], expected)


def test_dilated_neighbours_are_further_away():
    states = np.arange(1.0, 8.0).reshape(1, 7, 1)
    found = neighbours(states, np.array([[1, 1, 1, 1, 1, 2, 2]]), (-3, 0, 3))
    assert_close(found[0], [[0, 1, 4], [0, 2, 5], [0, 3, 0], [1, 4, 0], [2, 5, 0], [0, 6, 0], [0, 7, 0]])


def test_a_kernel_wider_than_the_row_sees_zeros():
    assert_close(neighbours(np.ones((1, 2, 1)), np.ones((1, 2), "int32"), (-5, 0, 5))[0], [[0, 1, 0], [0, 1, 0]])


def test_the_sum_of_three_words_by_hand():
    layer = SegmentConvolution(kernel_size=3)
    layer.build((1, 4, 1), (1, 4))
    layer.projection.set_weights([np.array([[1.0], [10.0], [100.0]]), np.array([0.5])])
    found = layer(np.array([[[1.0], [2.0], [3.0], [4.0]]]), np.array([[1, 1, 1, 0]]))
    assert_close(found[0, :, 0], [210.5, 321.5, 32.5, 0.5])


@pytest.mark.parametrize(("kernel_size", "dilation"), [(1, 1), (3, 1), (5, 2), (3, 4)])
def test_one_sentence_is_convolved_as_keras_does(kernel_size, dilation):
    ours = SegmentConvolution(kernel_size, dilation)
    theirs = keras.layers.Conv1D(6, kernel_size, padding="same", dilation_rate=dilation)
    states = normal(2, 9, 6)
    ours.build(states.shape, ONE_SENTENCE.shape)
    theirs.build(states.shape)
    randomise(ours)
    kernel, bias = ours.get_weights()
    theirs.set_weights([kernel.reshape(kernel_size, 6, 6), bias])
    assert_close(ours(states, ONE_SENTENCE), theirs(states))


@pytest.mark.parametrize("dilation", [1, 3])
def test_packed_sentences_are_convolved_as_if_each_had_a_row(dilation):
    layer = SegmentConvolution(5, dilation)
    first, second = normal(1, 6, 4), normal(1, 3, 4, seed=1)
    packed = np.concatenate([first, second, np.full((1, 2, 4), 1e3, "float32")], axis=1)
    found = as_numpy(layer(packed, np.array([[1] * 6 + [2] * 3 + [0] * 2])))
    assert_close(found[:, :6], layer(first, np.ones((1, 6), "int32")))
    assert_close(found[:, 6:9], layer(second, np.ones((1, 3), "int32")))


@pytest.mark.parametrize("arguments", [dict(kernel_size=4), dict(kernel_size=0), dict(kernel_size=3, dilation=0)])
def test_a_kernel_without_a_middle_or_a_distance_is_refused(arguments):
    with pytest.raises(ValueError, match="kernel_size|dilation"):
        SegmentConvolution(**arguments)
