"""Scripts without spaces: which letters are of them, and beside which of them lines break."""

import unicodedata

import pytest

from keras_transformer.pieces.scripts import HAN, KANA, UNSPACED_CHARACTER, breaks_anywhere
from keras_transformer.text.occurrences import is_apart
from keras_transformer.text.passages import Passage, Token
from keras_transformer.text.required import has_phrase

LETTERS = {  # by the first word of its name, a letter
    "CJK": "\u732b",
    "HIRAGANA": "\u306d",
    "KATAKANA": "\u30cd",
    "HALFWIDTH": "\uff88",
    "BOPOMOFO": "\u3105",
    "YI": "\ua000",
    "THAI": "\u0e01",
    "LAO": "\u0e81",
    "KHMER": "\u1780",
    "MYANMAR": "\u1000",
    "TIBETAN": "\u0f40",
    "TAI": "\u1950",
    "NEW": "\u1980",
}
SPACED = "a\u00e9\u0436\u03b1\u05d0\u0627\u0905\ud55c\u10d0\u12a0"


@pytest.mark.parametrize("script", LETTERS)
def test_words_of_these_scripts_are_found_inside_of_others_by_all_who_look(script):
    letter = LETTERS[script]
    assert unicodedata.name(letter).split()[0] == script and UNSPACED_CHARACTER.fullmatch(letter)
    assert is_apart(letter * 3, 1, 2) and has_phrase(letter * 3, letter)


@pytest.mark.parametrize("letter", SPACED)
def test_words_of_other_scripts_are_whole(letter):
    assert not UNSPACED_CHARACTER.match(letter) and not breaks_anywhere(letter)
    assert not is_apart(letter * 3, 1, 2) and not has_phrase(letter * 3, letter)


def test_every_letter_of_han_and_kana_is_of_a_script_without_spaces():
    for pattern in (HAN, KANA):
        for first, last in zip(pattern[::3], pattern[2::3], strict=True):
            assert UNSPACED_CHARACTER.fullmatch(first) and UNSPACED_CHARACTER.fullmatch(last) and breaks_anywhere(last)


@pytest.mark.parametrize(
    "text, line",
    [
        ("\u732b\n\u732b", "\u732b\u732b"),
        ("\u732b\u3002\n\u300c\u306d", "\u732b\u3002\u300c\u306d"),
        ("\ud55c\n\ud55c", "\ud55c \ud55c"),  # Korean has spaces
        ("\u0e01\n\u0e02", "\u0e01 \u0e02"),  # a space of Thai ends a clause
        ("\U0001f600\n\U0001f600", "\U0001f600 \U0001f600"),
    ],
)
def test_a_line_break_is_a_space_but_between_characters_beside_which_lines_break_anywhere(text, line):
    assert Passage([Token(text, text)]).line(0, len(text)).text == line
