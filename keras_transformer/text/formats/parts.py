"""What a file consists of: texts that are translated, and all else, which is written as it stands."""

import collections
import html
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from keras_transformer.ground.errors import InputError
from keras_transformer.ground.notations import json_of
from keras_transformer.text.passages import Passage, Token

log = logging.getLogger("keras_transformer")

CODE_UNITS = (  # \\u00e9, or both halves of a character above U+FFFF: `character_of`
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}"
)
ZEROS = re.compile(r"^(&#[xX]?)0+(?=[0-9a-fA-F])")  # before the number of a character
LONGEST_NAME = 40  # characters; that of the longest name of HTML has 33
NO_CHARACTER = "\ufffd"  # what HTML reads for a number that no character has


class TranslatedError(InputError):
    """An error in a file that was translated to its end all the same."""


class Field(NamedTuple):
    """A text in a file. laid_out: returns the lines of its translation in the form in which the file has them."""

    passage: Passage
    laid_out: Callable[[str], str] = str


Part = str | Field  # a str is no text: it stays as it is


def bytes_of(text: str) -> bytes:
    """Return what is written for a part: UTF-8, or the bytes of another encoding that stand in it as PEP 383 says."""
    return text.encode("utf-8", "surrogateescape")


def located(parts: Iterable[Part], where: str) -> Iterator[Part]:
    """Yield parts, whose texts then know where they are."""
    for part in parts:
        if isinstance(part, Field):
            part.passage.where = where
        yield part


def report(name: str, nouns: tuple[str, str], count: int, left: collections.Counter[str]) -> None:
    """Log how many units of a file were translated, and how many were left, by reason. nouns: of one, and of many."""
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in left.most_common() if number)
    message = f"{name}: {count:,} {nouns[count != 1]} translated"
    if reasons:
        log.warning("%s, %s left: %s", message, f"{left.total():,}", reasons)
    else:
        log.info("%s", message)


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

    def text(self, raw: str) -> str:
        """Return what a text without marks says."""
        return "".join(token.text for token in self.tokens(raw))

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

    def passage_of_lines(self, raw: str, line_break: re.Pattern[str]) -> Passage:
        return Passage(self.tokens_of_lines(raw, line_break), self.written)


def character_of(escape: str) -> str:
    """Return what an escape of CODE_UNITS means."""
    return json_of(f'"{escape}"')


def unescaped(reference: str) -> str:
    """Return what a reference to a character means: &amp; or &#38;. html.unescape raises at thousands of digits."""
    reference = ZEROS.sub(r"\1", reference)
    is_no_character = reference.startswith("&#") and len(reference) > LONGEST_NAME
    return NO_CHARACTER if is_no_character else html.unescape(reference)


PLAIN = Notation(re.compile(r"(?!)"), str, str)
