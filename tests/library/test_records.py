"""JSON lines and tab-separated values, beside the laws of every format (test_formats.py)."""

import re

import pytest

from keras_transformer.ground.errors import UserError
from tests.support.documents import capitals, texts_of, through

LATER = "\n" * 999  # lines before the one that an error names


@pytest.mark.parametrize(
    "name, fields, text, sentence",
    [
        ("jsonl", ["a"], LATER + '{"b": 1, "c": 2}', "file, line 1,000 has no field 'a'; it has b, c."),
        ("jsonl", ["a"], "{}", "file, line 1 has no field 'a'; it has none."),
        ("jsonl", ["a"], '{"a": [1]}', "file, line 1: the field 'a' is [1], not a text."),
        ("jsonl", ["a"], '{"a": "\\ud83d"}', "file, line 1: the field 'a' has \\ud83d, half of a character"),
        ("jsonl", ["a"], "[" * 200_000, "file, line 1 is not JSON: "),
        ("jsonl", ["a"], "[1, 2]", "file, line 1 is not a JSON object with fields, but [1, 2]."),
        ("jsonl", [], "{}", "--format jsonl needs the fields that are translated, such as --field text."),
        ("tsv", [], "a", "--format tsv needs the fields that are translated, such as --field 2, or"),
        ("tsv", ["0"], "a", "Fields are counted from 1: there is no field 0."),
        ("tsv", ["c"], "a\tb", "file, line 1 has no field 'c'; it has a, b."),
        ("tsv", ["1" * 5000], "a\tb", "file, line 1 has no field '111"),
        ("tsv", ["999999999"], "a\tb", "file, line 1 has 2 fields, and field 999999999 is to be translated."),
        ("tsv", ["1", "3"], LATER + "a\tb", "file, line 1,000 has 2 fields, and field 3 is to be translated."),
        ("tsv", ["2"], "a", "file, line 1 has 1 field, and field 2 is to be translated."),
    ],
)
def test_an_error_names_the_line_what_was_asked_and_what_was_found(name, fields, text, sentence):
    with pytest.raises(UserError, match="^" + re.escape(sentence)):
        through(name, text, str, fields)


@pytest.mark.parametrize(
    "name, fields, before, after",
    [
        ("jsonl", ["a"], '\ufeff {"n": %s, "a": "x"}' % ("1" * 5000), '\ufeff {"n": %s, "a": "X"}' % ("1" * 5000)),
        ("jsonl", ["a"], '{"a" : null, "a": "x" }', '{"a" : null, "a": "X" }'),
        ("tsv", ["a"], "\ufeffa\tb\nx\ty\n", "\ufeffa\tb\nX\ty\n"),
        ("tsv", ["\u00b2"], "\u00b2\tb\nx\ty\n", "\u00b2\tb\nX\ty\n"),  # a digit, but no number
        ("tsv", ["1", "3"], "x\ty\tz\n\n", "X\ty\tZ\n\n"),
    ],
)
def test_the_fields_that_are_asked_for_are_translated_and_no_other(name, fields, before, after):
    assert through(name, before, capitals, fields) == after


def test_a_tab_of_a_translation_is_a_space_in_a_column():
    assert through("tsv", "a\tb\n", lambda text: "x\ty", ["1"]) == "x y\tb\n"
    assert texts_of("tsv", "a b\n", ["1"]) == ["a b"]
