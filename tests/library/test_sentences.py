"""Lines of a paragraph: which of them go on in the next one."""

import pytest

from keras_transformer.config import ConfigError
from keras_transformer.text.documents import DocumentTranslator
from keras_transformer.text.sentences import NARROWEST, is_wrapped, sentences_of, undivided

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


@pytest.mark.parametrize("code", ["de", "DE", "deu", "ger", "de-AT", "de_DE", "deu_Latn"])
def test_all_codes_of_a_language_have_its_abbreviations(code):
    text = "Am 3. Mai kam Frau Dr. Bach. Sie blieb."
    assert [text[slice(*span)] for span in sentences_of(text, code)] == ["Am 3. Mai kam Frau Dr. Bach.", "Sie blieb."]
    assert len(sentences_of(text, "en")) > 2


@pytest.mark.parametrize("language", ["german", "", "d e", "deu_", None, 3])
def test_what_is_no_code_of_a_language_is_refused(language):
    with pytest.raises(ConfigError, match="The language is .*: give its code of ISO 639, such as de"):
        DocumentTranslator(list, language)
