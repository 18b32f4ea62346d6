"""What all kinds of outputs have in common: how long they took, and how many were cut."""

import time

import pytest

from keras_transformer.translation import Translation
from train.scoring.card import TimedTranslations, translate_timed


class Slow:
    """A Translator that takes a moment, and is cut in every line but the first."""

    def translate(self, lines):
        time.sleep(0.02)
        return [Translation(line, -1.0, is_cut=number > 0) for number, line in enumerate(lines)]


def test_a_text_is_timed_from_its_first_line_to_its_last_and_what_was_cut_is_counted():
    before = time.perf_counter()
    timed = translate_timed(Slow(), [("a", "x"), ("b", "y"), ("c", "z")])
    assert 0.02 <= timed.seconds <= time.perf_counter() - before
    assert timed.cut == 2 and [tuple(sample) for sample in timed.samples] == [
        ("a", "x", "a"),
        ("b", "y", "b"),
        ("c", "z", "c"),
    ]


def test_the_rate_is_of_sentences_per_second():
    timed = TimedTranslations([None] * 30, 4.0)
    assert timed.rate == pytest.approx(7.5) and timed.line().startswith("speed 7.5 sentences/s: 4.0 s")
