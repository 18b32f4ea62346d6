"""Bits that look random are lowbias32 of whole numbers (Wellons 2018), whatever the width of a backend's integers."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.ground.bits import mixed, modulo_2_to_32
from keras_transformer.layers.dropout import random_bits
from keras_transformer.search.rules.drawing import of_sources, uniform
from tests.support.models import as_numpy

NUMBERS = [0, 1, 2, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1]


def lowbias32(bits):
    """In Python's integers, which have no width."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1)):
        bits = (bits ^ bits >> shift) * factor % 2**32
    return bits


def bits_of(*numbers):
    bits = 0
    for number in numbers:
        bits = lowbias32(((bits ^ number % 2**32) + 0x9E3779B9) % 2**32)
    return bits


def test_mixed_bits_are_those_of_lowbias32():
    assert as_numpy(mixed(ops.cast(NUMBERS, "uint32"))).tolist() == [lowbias32(number) for number in NUMBERS]


@pytest.mark.parametrize("seed", [(0, 0), (1, 5), (2**32 - 1, 7), (9, 2**32 - 3)])
def test_the_mask_of_a_place_is_its_number_mixed_twice_with_the_seed(seed):
    stream = lowbias32(seed[0])
    step = lowbias32((stream + seed[1]) % 2**32)
    expected = [lowbias32((lowbias32((place + stream) % 2**32) + step) % 2**32) for place in range(6)]
    assert as_numpy(random_bits((2, 3), np.array(seed, "int64"))).tolist() == [expected[:3], expected[3:]]


def test_a_drawn_number_and_the_seed_of_a_source_are_their_highest_bits():
    numbers = [(3, 0, 7), (-1, 2, 7), (2**31 - 1, 5, 7)]
    found = as_numpy(uniform(*(np.array(column, "int32") for column in zip(*numbers, strict=True))))
    assert found.tolist() == [(bits_of(*each) >> 8) / 2**24 for each in numbers]
    tokens = [5, 6, 0, 7]
    total = sum(bits_of(token, place) >> 16 for place, token in enumerate(tokens) if token)
    found = as_numpy(of_sources(np.array([11], "int32"), np.array([tokens], "int32")))
    assert found.tolist() == [bits_of(11, total) >> 1]


@pytest.mark.parametrize(("backend", "expected"), [("torch", 5), ("tensorflow", 2**32 + 5), ("jax", 2**32 + 5)])
def test_only_pytorchs_64_bits_are_cut(monkeypatch, backend, expected):
    wide = ops.cast(2**32 + 5, "int64")
    monkeypatch.setattr(keras.backend, "backend", lambda: backend)
    assert int(modulo_2_to_32(wide)) == expected
