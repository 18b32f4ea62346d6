"""What is a list of lines, and what is refused as none."""

import types

import numpy as np
import pytest

from keras_transformer.ground.errors import InputError
from keras_transformer.pieces.batching import encoded_by, list_of_lines
from keras_transformer.text.asks import phrases_of


def type_of(value):
    return type(value).__name__


class Table:
    """As pandas has it: it iterates over the names of its columns."""

    ndim = 2

    def __iter__(self):
        return iter(["fox"])


@pytest.mark.parametrize("lines", [None, b"fox", 3, Table(), np.array("fox"), np.array([["fox"]])], ids=type_of)
def test_what_is_no_list_is_refused(lines):
    """The names of a table's columns would be translated without a word."""
    readers = {
        "lines must be a list of sentences": list_of_lines,
        "phrases must be a list of texts": phrases_of,
        "prefixes must be a list of texts": lambda texts: list_of_lines(texts, "Prefix"),
    }
    for asked, read in readers.items():
        with pytest.raises(TypeError, match=f"^{asked}.* Received: "):
            read(lines)


@pytest.mark.parametrize("lines", [("fox",), iter(["fox"]), np.array(["fox"]), {"fox": 1}, {"fox"}], ids=type_of)
def test_what_has_one_text_after_another_is_a_list(lines):
    assert list_of_lines(lines) == ["fox"]


def test_a_phrase_that_is_no_string_is_named_by_its_number():
    with pytest.raises(TypeError, match="Phrase 2 must be a string. Received: None"):
        phrases_of(["", None])


@pytest.mark.parametrize("error", [RuntimeError, TypeError])
def test_an_error_of_sentencepiece_that_no_text_explains_is_its_own(error):
    def encode(texts):
        raise error("out of order")

    for texts in ("fox", ["fox", "dog"]):
        with pytest.raises(error, match="^out of order$"):
            encoded_by(types.SimpleNamespace(encode=encode), texts)
    with pytest.raises(InputError, match="Text 2 has a lone surrogate"):
        encoded_by(types.SimpleNamespace(encode=encode), ["fox", "\ud800"])
