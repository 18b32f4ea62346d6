"""Lines of a paragraph: which of them go on in the next one."""

import pytest

from keras_transformer.text.sentences import NARROWEST, is_wrapped, undivided

FULL = "a" * (NARROWEST - 4)


@pytest.mark.parametrize(
    "following, width, goes_on",
    [
        ("next words", NARROWEST, True),  # "next" would end one character behind the width
        ("new words", NARROWEST, False),
        ("  next words", NARROWEST, True),  # indented, but no item of a list
        ("- nextwords", NARROWEST, False),
        ("next words", NARROWEST - 1, False),
    ],
)
def test_a_line_goes_on_if_the_first_word_of_the_next_did_not_fit(following, width, goes_on):
    assert is_wrapped(FULL, following, width) == goes_on


def test_a_sentence_may_end_where_a_span_ends_or_begins_but_not_inside():
    text = "ab <i>cd"
    assert [list(undivided(text, lengths)) for lengths in ([6, 2], [3, 5], [5, 3])] == [[6, 2], [3, 5], [8]]
