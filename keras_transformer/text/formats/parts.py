"""What a file consists of: texts that are translated, and all else, which is written as it stands."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from keras_transformer.errors import InputError
from keras_transformer.text.passages import Passage, Token


class TranslatedError(InputError):
    """An error in a file that was translated to its end all the same."""


class Field(NamedTuple):
    """A text in a file. laid_out: returns the lines of its translation in the form in which the file has them."""

    passage: Passage
    laid_out: Callable[[str], str] = str


Part = str | Field  # a str is no text: it stays as it is


class Notation(NamedTuple):
    """How a kind of file writes text: what stands for other characters, and how a text is written.

    escapes: what has another meaning than its characters; meaning: of one of them; written: a text in this notation.
    """

    escapes: re.Pattern[str]
    meaning: Callable[[str], str]
    written: Callable[[str], str]

    def tokens(self, raw: str) -> Iterator[Token]:
        """Yield the tokens of a text without marks."""
        reached = 0
        for found in self.escapes.finditer(raw):
            if found.start() > reached:
                yield Token(raw[reached : found.start()], raw[reached : found.start()])
            yield Token(found[0], self.meaning(found[0]))
            reached = found.end()
        if reached < len(raw):
            yield Token(raw[reached:], raw[reached:])

    def tokens_of_lines(self, raw: str, line_break: re.Pattern[str]) -> Iterator[Token]:
        """Yield the tokens of a text without marks in which a line break, with white space around it, is a space."""
        reached = 0
        for found in line_break.finditer(raw):
            yield from self.tokens(raw[reached : found.start()])
            yield Token(found[0], " ", True)
            reached = found.end()
        yield from self.tokens(raw[reached:])

    def passage(self, raw: str) -> Passage:
        return Passage(self.tokens(raw), self.written)


PLAIN = Notation(re.compile(r"(?!)"), str, str)
