"""The section `tokenizer` of a run configuration: which pieces the text is divided into."""

from collections.abc import Callable
from typing import Literal

import pydantic

from keras_transformer.config import ConfigError
from keras_transformer.normalization import NFC, NORMALIZATIONS

from .data import DataSection
from .section import PathText, Section


class TokenizerConfig(Section):
    """The joint vocabulary of both languages."""

    PATHS = ("model",)
    vocab_size: int = pydantic.Field(8_000, ge=260)  # 4 special ids and 256 bytes come first
    model: PathText | None = None  # a SentencePiece .model file to use instead of training one
    lowercase: bool = False  # of one that is trained: make all text lower case, and so all translations
    dummy_prefix: bool = False  # of one that is trained: the first word of a text has the pieces that it has further on
    normalization: Literal[NORMALIZATIONS] = NFC  # of one that is trained: which characters it makes the same


def check_tokenizer(tokenizer: TokenizerConfig, data: DataSection, where: Callable[[str], str]) -> None:
    """Raises ConfigError for a tokenizer that would change the symbols of the text: brackets of trees, or tags.

    where: from a key to the file or option that set it.
    """
    for key, reason in data.unfit_tokenizer.items():
        if getattr(tokenizer, key):
            raise ConfigError(f"{where(f'tokenizer.{key}')}: tokenizer.{key} is true, but {reason}: leave it out.")
