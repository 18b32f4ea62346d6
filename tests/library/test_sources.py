"""Lines as token ids: what is cut or refused, at the limit itself."""

import re
import types

import numpy as np
import pytest

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.errors import ConfigError, InputError
from keras_transformer.ground.tokens import EOS, UNK
from keras_transformer.pieces.language_marks import Marks
from keras_transformer.pieces.sources import (
    LONGEST_SOURCE,
    check_batch_size,
    check_vocabulary,
    encoded_lines,
    encoded_prefix,
    longest_source,
)

TOKENIZER = types.SimpleNamespace(
    encode_target=list, encode_batch=lambda texts: [list(text) for text in texts], unknown_tag=lambda text: ""
)  # by letter


def test_a_source_has_from_two_tokens_to_the_most_and_to_the_positions_of_the_model():
    config = TransformerConfig()
    assert [longest_source(config, tokens) for tokens in (2, LONGEST_SOURCE)] == [2, LONGEST_SOURCE]
    for tokens in (1, LONGEST_SOURCE + 1):
        with pytest.raises(ConfigError, match=f"max_source_tokens is {tokens}; it must be from 2 to {LONGEST_SOURCE}"):
            longest_source(config, tokens)
    learned = config.replace(positions="learned", max_positions=8)
    assert [longest_source(learned, tokens) for tokens in (7, 8, 9)] == [7, 8, 8]


@pytest.mark.parametrize("value", ["8", None, 2.5, True, [8]])
def test_a_number_of_an_argument_is_whole(value):
    with pytest.raises(ConfigError, match=rf"^batch_size is {re.escape(repr(value))}; it must be a whole number\.$"):
        check_batch_size(value)
    with pytest.raises(ConfigError, match="^max_source_tokens is .*; it must be a whole number"):
        longest_source(TransformerConfig(), value)
    check_batch_size(np.int64(1))


@pytest.mark.parametrize("tokenizer", ["runs/mine/tokenizer.model", None])
def test_a_path_is_no_tokenizer(tokenizer):
    with pytest.raises(TypeError, match=f"must be a Tokenizer, as .*open_tokenizer.FILE.* Received: {tokenizer!r}"):
        check_vocabulary(TransformerConfig(), tokenizer)


def test_a_prefix_leaves_a_place_for_the_end():
    assert encoded_prefix(TOKENIZER, "abc", 4) == list("abc")
    with pytest.raises(InputError, match="'abcd' has 4 tokens; at most 3 are possible"):
        encoded_prefix(TOKENIZER, "abcd", 4)


def test_a_prefix_that_no_translation_can_have_is_refused():
    tokenizer = types.SimpleNamespace(encode_target=lambda text: [UNK if letter == "猫" else 9 for letter in text])
    assert encoded_prefix(tokenizer, "die Katze", 99) == [9] * 9
    with pytest.raises(InputError, match="'die 猫' has characters for which this model has no piece"):
        encoded_prefix(tokenizer, "die 猫", 99)


def test_a_line_that_just_fits_is_not_cut_and_a_longer_one_is_named(caplog):
    assert list(encoded_lines(TOKENIZER, ["abc", " "], 4)) == [[*"abc", EOS], []] and not caplog.text
    assert list(encoded_lines(TOKENIZER, ["a", "abcd"], 4, first_line=7)) == [["a", EOS], [*"abc", EOS]]
    assert "line 8 has 4 tokens; only the first 3 are used" in caplog.text and "line 7" not in caplog.text


def test_a_tag_that_a_line_has_already_takes_no_room_beside_it(caplog):
    marks = [Marks(("a", "b"))]
    assert list(encoded_lines(TOKENIZER, ["abcd"], 5, marks=marks)) == [[*"abcd", EOS]] and not caplog.text
    assert list(encoded_lines(TOKENIZER, ["cde"], 5, marks=marks)) == [[*"abcd", EOS]]
    assert "line 1 has 3 tokens; only the first 2 are used" in caplog.text


def test_a_line_break_at_the_end_of_a_line_is_no_second_line(caplog):
    assert len(list(encoded_lines(TOKENIZER, ["a\n", "\nb\r\n"], 9))) == 2 and not caplog.text
    list(encoded_lines(TOKENIZER, ["a\nb\n"], 9, first_line=4))
    assert "line 4 has line breaks" in caplog.text


def test_the_marks_of_languages_leave_room_for_a_token():
    assert longest_source(TransformerConfig(), 5, marks=3) == 5
    with pytest.raises(ConfigError, match="max_source_tokens is 4; it must be from 5 to .*, of which 3 tell the model"):
        longest_source(TransformerConfig(), 4, marks=3)
