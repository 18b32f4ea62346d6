"""A Translator whose translations are its lines."""

import types

from keras_transformer.pieces.language_marks import NO_LANGUAGES
from keras_transformer.pieces.translation import Translation


class Repeating:
    """`lines` are those that any of them was given last."""

    lines = []
    languages = NO_LANGUAGES

    def __init__(self, is_lowercase=False):
        self.tokenizer = types.SimpleNamespace(is_lowercase=is_lowercase, restored=list)

    def translate(self, lines):
        Repeating.lines = list(lines)
        return [Translation(line, 0.0) for line in lines]
