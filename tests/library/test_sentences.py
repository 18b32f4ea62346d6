"""Lines of a paragraph: which of them go on in the next one."""

import re

import pytest

from keras_transformer.ground.errors import ConfigError
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


@pytest.mark.parametrize("span", ["https://x.org/a!b", "www.x.org/a?B", "jo@x.org", "{a.b}", "<a title='B. C'>"])
def test_no_sentence_ends_inside_of_a_span(span):
    text = f"x {span} y"
    for end in range(1, len(text)):
        is_inside = 2 < end < 2 + len(span)
        assert list(undivided(text, [end, len(text) - end])) == ([len(text)] if is_inside else [end, len(text) - end])


@pytest.mark.parametrize("code", ["de", "DE", "deu", "ger", "de-AT", "de_DE", "deu_Latn"])
def test_all_codes_of_a_language_have_its_abbreviations(code):
    text = "Am 3. Mai kam Frau Dr. Bach. Sie blieb."
    assert [text[slice(*span)] for span in sentences_of(text, code)] == ["Am 3. Mai kam Frau Dr. Bach.", "Sie blieb."]
    assert len(sentences_of(text, "en")) > 2


@pytest.mark.parametrize("language", ["german", "", "d e", "deu_", None, 3])
def test_what_is_no_code_of_a_language_is_refused(language):
    with pytest.raises(ConfigError, match="The language is .*: give its code of ISO 639, such as de"):
        DocumentTranslator(list, language)


def test_what_a_stranger_loses_of_a_text_is_one_sentence_with_the_rest_of_its_line(monkeypatch):
    monkeypatch.setattr("sentencex.segment", lambda code, text: [text] if text == "Good." else [text[:3], text[3:6]])
    text = "Good.\n Lost. It.\n"
    assert [text[slice(*span)] for span in sentences_of(text, "en")] == ["Good.", "Lost. It."]


def test_a_line_that_goes_on_is_one_with_the_next_and_its_bullet_is_none_of_it():
    text = f"- {FULL} one\ntwoo three.\n1. Four.\n2)\n"
    assert [text[slice(*span)] for span in sentences_of(text, "en")][0] == f"{FULL} one\ntwoo three."
    assert not any("2)" in text[slice(*span)] for span in sentences_of(text, "en"))


def test_a_url_that_touches_a_stop_of_chinese_ends_there():
    text = "见https://x.org。好"
    assert list(undivided(text, [15, 1])) == [15, 1]


@pytest.mark.parametrize(
    "language, text, sentences",
    [
        ("km", "នេះ។ នោះ៕ ខ", ["នេះ។", "នោះ៕", "ខ"]),
        ("km", "នេះ។នោះ។", ["នេះ។", "នោះ។"]),
        ("km", "ក ។ល។ ខ។ គ", ["ក ។ល។ ខ។", "គ"]),
        ("bo", "འདི། དེ། །ཡིན་ནོ།། ང་", ["འདི།", "དེ། །", "ཡིན་ནོ།།", "ང་"]),
        ("en", "Hi. A བ། ཀ།", ["Hi.", "A བ།", "ཀ།"]),
        ("my", "ဒါ။ ဟို။", ["ဒါ။", "ဟို။"]),
    ],
)
def test_sentences_end_at_the_stops_of_khmer_tibetan_and_burmese(language, text, sentences):
    assert [text[slice(*span)] for span in sentences_of(text, language)] == sentences


@pytest.mark.parametrize("space", [chr(code) for code in range(0x3001) if chr(code).isspace()], ids=ascii)
def test_white_space_of_any_kind_may_stand_before_a_stop(space):
    for code in ("en", "de", "fr", "ru", "ja"):
        text = f"See page B{space}. É{space}. B"
        parts = [text[slice(*span)] for span in sentences_of(text, code)]
        assert re.sub(r"\W", "", "".join(parts)) == re.sub(r"\W", "", text)
