"""Seconds as people read them."""

import pytest

from keras_transformer.ground.durations import duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (9, "9 s"), (59.6, "1 min 00 s"), (65, "1 min 05 s"), (3599, "59 min 59 s"), (3725, "1 h 02 min")],
)
def test_a_duration_has_its_two_largest_units(seconds, text):
    assert duration(seconds) == text
