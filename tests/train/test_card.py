"""What all kinds of outputs have in common: how long they took, and how many were cut."""

import time
import types

import pytest

from keras_transformer.pieces.translation import Translation
from train.scoring.card import INTERVAL_NOTE, Card, TimedTranslations, translate_timed


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
    timed = TimedTranslations([None] * 30, 4.04)
    assert timed.rate == pytest.approx(30 / 4.04) and timed.line().startswith("speed 7.4 sentences/s: 4.0 s, ")


@pytest.mark.parametrize(
    ("intervals", "cut", "notes"), [((None, None), 0, 0), ((None, (1, 2)), 0, 1), (((1, 2), (1, 2)), 3, 2), ((), 3, 1)]
)
def test_what_an_interval_is_stands_below_scores_of_which_any_has_one(intervals, cut, notes):
    scores = types.SimpleNamespace(measured=[types.SimpleNamespace(interval=interval) for interval in intervals])
    found = Card.notes(types.SimpleNamespace(scores=scores, timed=types.SimpleNamespace(cut=cut)))
    assert len(found) == notes and (INTERVAL_NOTE in found) == any(intervals)
    assert any(note.startswith("3 outputs were cut") for note in found) == (cut > 0)
