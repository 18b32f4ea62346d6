"""The section `tokenizer` of a run configuration: which pieces the text is divided into."""

from collections.abc import Callable
from typing import Annotated

import pydantic

from keras_transformer.ground.errors import ConfigError
from keras_transformer.pieces.normalization import NFC, NORMALIZATIONS
from keras_transformer.text.placeholders import MOST_PLACEHOLDERS

from .data import DataSection
from .section import OneOf, PathText, Section

FEWEST_PIECES = 260  # of a tokenizer that is trained: 4 special ids and 256 bytes come first


class TokenizerConfig(Section):
    """The joint vocabulary of both languages."""

    PATHS = ("model",)
    vocab_size: int = pydantic.Field(8_000, ge=1)  # of one that is trained: at least FEWEST_PIECES
    model: PathText | None = None  # a SentencePiece .model file to use instead of training one
    lowercase: bool = False  # of one that is trained: make all text lower case, and so all translations
    dummy_prefix: bool = False  # of one that is trained: the first word of a text has the pieces that it has further on
    normalization: Annotated[str, OneOf(NORMALIZATIONS)] = NFC  # of one that is trained: which characters are the same
    split_digits: bool = False  # of one that is trained: each digit is a piece of its own
    placeholders: int = pydantic.Field(0, ge=0, le=MOST_PLACEHOLDERS)  # of one that is trained: pieces for spans


def check_tokenizer(tokenizer: TokenizerConfig, data: DataSection, where: Callable[[str], str]) -> None:
    """Raises ConfigError for a tokenizer that cannot be trained, or would change symbols: brackets of trees, or tags.

    tokenizer: with the model that it is, if it is given; one that is given has as many pieces as it has.

    where: from a key to the file or option that set it.
    """
    if not tokenizer.model and tokenizer.vocab_size < FEWEST_PIECES:
        raise ConfigError(
            f"{where('tokenizer.vocab_size')}: tokenizer.vocab_size is {tokenizer.vocab_size}: a tokenizer that is "
            f"trained has at least {FEWEST_PIECES} pieces, the special ones and the 256 bytes."
        )
    for key, reason in data.unfit_tokenizer.items():
        if getattr(tokenizer, key):
            raise ConfigError(f"{where(f'tokenizer.{key}')}: tokenizer.{key} is true, but {reason}: leave it out.")
