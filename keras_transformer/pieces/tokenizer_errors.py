"""What is wrong with a vocabulary that is asked for, in words of the configuration."""

import numbers
import re
from collections.abc import Sequence

from keras_transformer.ground.errors import UserError
from keras_transformer.ground.tokens import OWN_PIECE

MOST_PIECES = 2**31 - 1  # that SentencePiece counts


class TokenizerError(UserError):
    """A vocabulary that cannot be learned, or a model file that cannot be used; the message gives the reason."""


def check_vocab_size(vocab_size: int) -> None:
    """Raises TokenizerError for a number of pieces that is none."""
    is_whole = isinstance(vocab_size, numbers.Integral) and not isinstance(vocab_size, bool)
    if not is_whole or not 1 <= vocab_size <= MOST_PIECES:
        raise TokenizerError(
            f"tokenizer.vocab_size is {vocab_size!r:.60}; it must be a whole number from 1 to {MOST_PIECES:,}."
        )


def check_symbols(symbols: Sequence[str]) -> None:
    """Raises TokenizerError for a symbol that is empty, given twice, or a piece that every tokenizer has.

    Raises TypeError for one string, whose letters would become symbols.
    """
    if isinstance(symbols, str | bytes):
        raise TypeError(f"symbols must be a list of texts, not one string. Received: {symbols!r:.60}")
    for number, symbol in enumerate(symbols):
        if not symbol or symbol in symbols[:number] or OWN_PIECE.fullmatch(symbol):
            why = "is empty, is given twice, or is a piece that every tokenizer has"
            raise TokenizerError(f"{symbol!r} cannot be a symbol: it {why}.")


def explanation(error: str, vocab_size: int) -> str:
    """Return a sentence that explains an error of SentencePiece's trainer in terms of the configuration."""
    if largest := re.search(r"size too high .* <= (\d+)", error):
        return (
            f"tokenizer.vocab_size is {vocab_size}, but the training text is too small for so many pieces: "
            f"the largest possible size is {largest[1]}."
        )
    if smallest := re.search(r"smaller than required_chars. \d+ vs (\d+)", error):
        return (
            f"tokenizer.vocab_size is {vocab_size}, but the 4 special ids, the 256 bytes and the characters "
            f"of the training text alone need {smallest[1]}: ask for at least that."
        )
    if "sentences_.empty()" in error or "all_chars_count" in error:
        return "There is no text to train a tokenizer on: every sentence is empty."
    return f"SentencePiece could not train a vocabulary of {vocab_size} pieces: {error}"
