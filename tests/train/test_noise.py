"""Changes of a text: what each does to a sentence, and what it does to no text."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from train.data.augmentation import (
    PUNCTUATION,
    in_capitals,
    in_title_case,
    with_other_punctuation,
    with_typing_mistake,
    without_last_stop,
)

DRAWN = (with_other_punctuation, with_typing_mistake)


def drawn(change, text, count=200):
    return {change(text, np.random.default_rng(seed)) for seed in range(count)}


def test_capitals_and_title_case():
    assert in_capitals("it's a dog: ß.") == "IT'S A DOG: SS."
    assert in_title_case("it's  a dog ") == "It's  A Dog "


@pytest.mark.parametrize(
    ("text", "expected"), [("A dog.", "A dog"), ("A dog ...  ", "A dog"), ("Why", "Why"), ("!", "!")]
)
def test_the_last_stop_is_left_out(text, expected):
    assert without_last_stop(text) == expected


def test_one_mark_is_left_out_or_doubled():
    assert drawn(with_other_punctuation, "Oh, no.") == {"Oh no.", "Oh,, no.", "Oh, no", "Oh, no.."}


def test_a_mark_that_is_the_whole_text_is_never_left_out():
    assert drawn(with_other_punctuation, " ! ") == {" ! ", " !! "}


@pytest.mark.parametrize("text", ["3.5, or 1,000.", "at 12:30, ...", "5. 7"])
def test_no_change_makes_another_number(text):
    number = re.compile(r"\d+(?:[.,:]\d+)*")
    for changed in drawn(with_other_punctuation, text) | drawn(with_typing_mistake, text):
        assert number.findall(changed) == number.findall(text)


def test_every_typing_mistake_of_a_word_is_made():
    assert drawn(with_typing_mistake, "a to.") == {"a ot.", "a o.", "a tto.", "a ao.", "a oo."}


@settings(max_examples=40)
@given(st.text(), st.integers(0, 1000))
def test_any_text_can_be_changed_and_the_same_generator_changes_it_alike(text, seed):
    for change in DRAWN:
        first, second = (change(text, np.random.default_rng(seed)) for _ in range(2))
        assert first == second and abs(len(first) - len(text)) <= 1
        assert bool(first.strip()) == bool(text.strip())


@settings(max_examples=40)
@given(st.text())
def test_what_a_change_does_not_apply_to_stays(text):
    rng = np.random.default_rng(1)
    assert with_typing_mistake("".join(c for c in text if not c.isalpha()), rng) == "".join(
        c for c in text if not c.isalpha()
    )
    plain = "".join(c for c in text if c not in PUNCTUATION)
    assert with_other_punctuation(plain, rng) == plain
