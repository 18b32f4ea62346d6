"""A vocabulary that makes no sense is refused in a sentence, not in words of SentencePiece."""

import numpy as np
import pytest

from keras_transformer.pieces.tokenizer import Tokenizer, TokenizerError, explanation, train_tokenizer

SENTENCES = ["two three four five six seven"] * 9


@pytest.mark.parametrize("size", [0, -5, 300.0, "300", None, True, 10**12, float("nan")])
def test_a_size_that_is_no_number_of_pieces_is_refused(tmp_path, size):
    with pytest.raises(
        TokenizerError, match="tokenizer.vocab_size is .*; it must be a whole number from 1 to 2,147,483,647"
    ):
        train_tokenizer(SENTENCES, tmp_path / "tokenizer.model", size)


def test_a_size_of_numpy_is_a_whole_number(tmp_path):
    train_tokenizer(SENTENCES, tmp_path / "tokenizer.model", np.int64(275))
    assert Tokenizer(tmp_path / "tokenizer.model").vocab_size == 275


@pytest.mark.parametrize("symbols", ["<2de>", b"<2de>"])
def test_one_string_is_not_a_list_of_symbols(tmp_path, symbols):
    with pytest.raises(TypeError, match="symbols must be a list of texts, not one string. Received: "):
        train_tokenizer(SENTENCES, tmp_path / "tokenizer.model", 275, symbols)


@pytest.mark.parametrize("sentences", [[], [""], ["", " ", "\u200b"]])
def test_blank_sentences_are_no_text(tmp_path, sentences):
    with pytest.raises(TokenizerError, match="There is no text to train a tokenizer on"):
        train_tokenizer(sentences, tmp_path / "tokenizer.model", 275)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        ("Vocabulary size too high (300). Please set it to a value <= 41.", "the largest possible size is 41."),
        ("Vocabulary size is smaller than required_chars. 20 vs 270.", "of the training text alone need 270: ask for"),
        ("(!sentences_.empty())", "There is no text to train a tokenizer on"),
        ("all_chars_count > 0", "There is no text to train a tokenizer on"),
        ("a disk is full", "SentencePiece could not train a vocabulary of 300 pieces: a disk is full"),
    ],
)
def test_an_error_of_the_trainer_is_explained_in_terms_of_the_configuration(error, sentence):
    assert sentence in explanation(error, 300)
