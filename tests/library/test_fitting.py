"""Sentences that are too long for a model: where they are split."""

import pytest

from keras_transformer.text.fitting import fitting, halves


@pytest.mark.parametrize(
    "text, parts",
    [
        ("aaaa, bbbb cccc dddd", ["aaaa, bbbb", "cccc dddd"]),  # 20 characters: the comma is in the first quarter
        ("aaaaa, bbb cccc dddd", ["aaaaa,", "bbb cccc dddd"]),
        ("aaaaaaa; bb, cc dddd", ["aaaaaaa;", "bb, cc dddd"]),  # the comma is nearer to the middle
        ("aaaaaa, bbb, cc dddd", ["aaaaaa, bbb,", "cc dddd"]),
        ("aaa bbbbbb", ["aaa", "bbbbbb"]),
        ("aaaabbbb", ["aaaa", "bbbb"]),
        ("aae\u0301bb", ["aae\u0301", "bb"]),
        ("a", ["a"]),
    ],
)
def test_a_sentence_is_split_after_the_best_punctuation_near_its_middle_else_between_words(text, parts):
    padded = f"xx {text}; y"  # what is around a sentence does not count
    assert [padded[start:end] for start, end in halves(padded, 3, 3 + len(text))] == parts


def test_only_what_is_too_long_is_split_and_each_part_is_asked_about_once():
    text, asked = "one two three four. five.", []

    def are_too_long(spans):
        asked.extend(spans)
        return [end - start > 9 for start, end in spans]

    spans = fitting(text, [(0, 19), (20, 25)], are_too_long)
    assert [text[start:end] for start, end in spans] == ["one two", "three", "four.", "five."]
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize(
    "text, parts",
    [
        ("aaaa bbb cccc ddd, e", ["aaaa bbb", "cccc ddd, e"]),  # a comma in the last quarter counts as little
        ("a\u0301\u0301\u0301", ["a\u0301\u0301\u0301"]),
        ("ag\u0301\u0301", ["a", "g\u0301\u0301"]),
        ("aaag\u0301\u0301\u0301\u0301", ["aaa", "g\u0301\u0301\u0301\u0301"]),
        *((f"aa{joined}{joined}b", [f"aa{joined}{joined}", "b"]) for joined in "\u200d\ufe0e\ufe0f\u0301"),
    ],
)
def test_a_place_is_near_the_middle_and_not_before_what_belongs_to_the_letter_before(text, parts):
    assert [text[start:end] for start, end in halves(text, 0, len(text))] == parts


FAMILY, FLAG = "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea"


@pytest.mark.parametrize(
    "letter",
    [
        "\u0915\u094d\u0937\u094d\u092e\u094d\u092f",
        "\u0939\u093f",
        FAMILY,
        FLAG,
        "\u0e01\u0e33",
        "\u1112\u1161\u11ab",
        "e\u0301\u0302",
    ],
)
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_no_letter_is_cut_whatever_it_is_made_of(letter, count):
    word = letter * count
    parts = {word[start:end] for start, end in fitting(word, [(0, len(word))], lambda spans: [True] * len(spans))}
    assert parts == {letter}


def test_sentences_are_asked_about_from_left_to_right_and_one_that_cannot_be_split_stays():
    asked = []

    def are_too_long(spans):
        assert len(asked) < 9
        asked.append(list(spans))
        return [True] * len(spans)

    spans = [(4, 5), (0, 1), (2, 3)]
    assert fitting("a b c", spans, are_too_long) == spans and asked == [sorted(spans)]
