"""Texts that a program knows by a key: which are translated, which stay and why, and what must come through them."""

import collections
import functools
import logging
import re
from collections.abc import Callable, Iterator

from keras_transformer.ground.errors import InputError
from keras_transformer.text.formats.filled_in import has_filled_in
from keras_transformer.text.formats.key_marks import marked, place_of_mark
from keras_transformer.text.formats.parts import Field, Notation, located, report
from keras_transformer.text.messages import is_sentence, pieces_of
from keras_transformer.text.passages import Passage, Token
from keras_transformer.text.spans import PATTERNS, TAGS
from keras_transformer.text.syntaxes import PLACEHOLDER

log = logging.getLogger("keras_transformer")

WORDLESS, NAMES, KEPT = "without words", "names or addresses", "not to be translated"
NAME = re.compile(rf"[\w$-]++(?:\.[\w$-]++)++|(?:{PATTERNS['urls'].pattern})|(?:{PATTERNS['emails'].pattern})", re.I)
MARK_OF_KEY = "&"  # in Qt and in most programs of Java


class Entries:
    """The entries of a file, as they are read: what becomes of them is logged at the end."""

    def __init__(self, name: str, nouns: tuple[str, str] = ("text", "texts")):
        self.name, self.nouns, self.count, self.left = name, nouns, 0, collections.Counter[str]()
        self._lines: dict[tuple[str, ...], int] = {}

    def again(self, line: int, *key: str) -> str:
        """Return a sentence if a line has a key again, of which a program reads one text; "" if it has not."""
        if key not in self._lines:
            self._lines[key] = line
            return ""
        shown = " ".join(filter(None, key))
        return f"{self.name}, line {line:,} has {shown[:60]!r} of line {self._lines[key]:,} again"

    def note_key(self, line: int, *key: str) -> None:
        """Raises InputError if a line has a key again."""
        if sentence := self.again(line, *key):
            raise InputError(f"{sentence}: remove one of them.")

    def is_left(self, text: str, reason: str = "") -> bool:
        """Return whether a text stays, for a reason or because it has no words, and count it."""
        reason = reason or why_left(text)
        if reason:
            self.left[reason] += 1
        else:
            self.count += 1
        return bool(reason)

    def report(self) -> None:
        report(self.name, self.nouns, self.count, self.left)


def why_left(text: str) -> str:
    """Return why a text without its markup is not translated; "" if it is. Of an ICU message, the branches count."""
    pieces = pieces_of(text)
    shown = text if pieces is None else " ".join(filter(is_sentence, pieces))
    if not any(map(str.isalpha, PLACEHOLDER.sub("", shown))):
        return WORDLESS
    return NAMES if NAME.fullmatch(text.strip()) else ""


def field_of(
    passage: Passage,
    meaning: Callable[[str], str],
    where: str,
    finish: Callable[[str], str] = str,
    original: str | None = None,
) -> Iterator[Field]:
    """Yield the field of a text, which stays as it is, and is logged, if its translation lacks what is filled in.

    meaning: of a text as it is written. finish: returns how a translation is written that has all. original: what
    stands in the file, if it is not the text alone.
    """
    source = passage.raw
    laid_out = functools.partial(checked, source, source if original is None else original, meaning, where, finish)
    yield from located([Field(passage, laid_out)], where)  # type: ignore[misc]


def checked(
    source: str,
    original: str,
    meaning: Callable[[str], str],
    where: str,
    finish: Callable[[str], str],
    translation: str,
) -> str:
    """Return a translation, or what was there if it lacks what a program fills in. Both are as they are written."""
    if has_filled_in(meaning(source), meaning(translation)):
        return original if translation == source else finish(translation)
    log.warning("%s stays as it is: %r has not what a program fills in, as %r has", where, translation, source)
    return original


def without_key_mark(raw: str, notation: Notation) -> tuple[str, Callable[[str], str]]:
    """Return a text without the sign that marks a key, as in &Open, and what puts it into a translation."""
    text = notation.text(raw)
    place = place_of_mark(text, MARK_OF_KEY)
    if place is None:
        return raw, str
    mark = text[place : place + 2]
    plain = notation.written(text[:place] + text[place + 1 :])
    return plain, lambda translation: notation.written(marked(notation.text(translation), mark))


def with_tags_as_marks(tokens: list[Token]) -> list[Token]:
    """Return tokens in which a tag that stands in the text, such as &lt;b>, is one mark."""
    if not any("<" in token.text for token in tokens):
        return tokens
    units: list[Token] = []
    for token in tokens:
        units += [Token(each, each) for each in token.raw] if token.raw == token.text else [token]
    signs = "".join(unit.text if len(unit.text) == 1 else "\0" for unit in units)
    merged, reached = [], 0
    for found in PATTERNS[TAGS].finditer(signs):
        merged += units[reached : found.start()]
        merged.append(Token("".join(unit.raw for unit in units[slice(*found.span())]), "", True))
        reached = found.end()
    return merged + units[reached:]
