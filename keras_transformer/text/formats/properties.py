"""Resource bundles of Java, .properties: each value is translated where it stands, and nothing else changes.

The format: https://docs.oracle.com/en/java/javase/21/docs/api/java.base/java/util/Properties.html.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from keras_transformer.ground.errors import InputError
from keras_transformer.text.formats.encodings import in_encoding, is_utf_8
from keras_transformer.text.formats.entries import Entries, field_of, without_key_mark
from keras_transformer.text.formats.parts import CODE_UNITS, Notation, Part, character_of
from keras_transformer.text.passages import Passage, Token

LATIN = "iso-8859-1"
LINE = re.compile(r"(?P<space>[ \t\f]*+)(?:(?P<rest>[#!][^\r\n]*+)|(?P<key>(?:\\(?:\r\n|[\s\S])|[^\\:=\s])*+)"
                  r"(?P<between>[ \t\f]*+(?:[:=][ \t\f]*+)?(?:\\(?:\r\n|[\r\n])[ \t\f]*+)*+)"
                  r"(?P<value>(?:\\(?:\r\n|[\s\S])|[^\\\r\n])*+))(?P<end>\\?(?:\r\n|[\r\n]|\Z))")  # fmt: skip
ESCAPE = re.compile(
    rf"{CODE_UNITS}"
    r"|(?<![ \t])[ \t]*+\\(?:\r\n|[\r\n])[ \t\f]*+|\\[^u\r\n]"
)
DOUBLED = re.compile(rf"''|'[{{}}][^'\r\n]*+'|{ESCAPE.pattern}")  # and quoted braces, in patterns of MessageFormat
DAMAGED = re.compile(r"(?<!\\)(?:\\\\)*+\\u(?![0-9a-fA-F]{4})")
MEANINGS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
WRITTEN = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\f": "\\f"}
ARGUMENT = re.compile(r"\{\d")
ALONE = re.compile(r"\w'\w")  # an apostrophe that MessageFormat would not show


def meaning_of(escape: str) -> str:
    """Return what an escape such as \\n or \\u00e9 means; of the end of a line that goes on, a space or nothing."""
    if escape == "''":
        return "'"
    if is_end_of_line(escape):
        return " " if escape[0] in " \t" else ""
    if escape[0] == "'":
        return escape
    if escape[1] == "u":
        return character_of(escape)
    return MEANINGS.get(escape[1], escape[1])


def is_end_of_line(escape: str) -> bool:
    """Return whether this ends a line that goes on in the next one."""
    return "\n" in escape or "\r" in escape


def written(text: str) -> str:
    """Return a text with escapes, but for letters beyond ASCII."""
    return "".join(WRITTEN.get(character, character) for character in text)


def written_in_ascii(text: str) -> str:
    return "".join(each if each.isascii() else json.dumps(each)[1:-1] for each in written(text))


def properties_parts(stream: Iterable[bytes], name: str, fields: Sequence[str]) -> Iterator[Part]:
    """Yield the parts of a file: a field for each value. What was left, and why, is logged at the end.

    A file that is UTF-8 and not ASCII alone stays UTF-8; any other is ISO-8859-1, and new letters beyond ASCII are
    \\u00e9 in it, which every version of Java reads. Raises InputError, with the line, for a key that is there twice.
    """
    content = b"".join(stream)
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in content:
        raise InputError(f"{name} is not ISO-8859-1 or UTF-8, as .properties are: convert it first.")
    is_wide = not content.isascii() and is_utf_8(content)
    text = content.decode("utf-8" if is_wide else LATIN)
    parts = parts_of(text, name, written if is_wide else written_in_ascii)
    yield from parts if is_wide else in_encoding(parts, LATIN)


def parts_of(text: str, name: str, write: Callable[[str], str]) -> Iterator[Part]:
    """Yield the parts of a text. write: returns how a value is written."""
    entries, found = Entries(name), list(lines_of(text, name))
    doubles = doubles_apostrophes([line["value"] for _, line in found if line["key"]])
    for number, line in found:
        if line["key"]:
            entries.note_key(number, line["key"])
    yield text[: text.startswith("\ufeff")]
    for number, line in found:
        raw, notation = line["value"] or "", Notation(ESCAPE, meaning_of, write)
        if "''" in raw or (doubles and ARGUMENT.search(raw)):
            notation = Notation(DOUBLED, meaning_of, lambda text: write(text.replace("'", "''")))
        if not line["key"] or entries.is_left(notation.text(raw)):
            yield line[0]
            continue
        plain, finish = without_key_mark(raw, notation)
        yield line[0][: line.start("value") - line.start()]
        passage = Passage(tokens_of(plain, notation), notation.written)
        yield from field_of(passage, notation.text, f"{name}, line {number:,}", finish, raw)
        yield line["end"]
    entries.report()


def lines_of(text: str, name: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the logical lines of a text, each with its number. Raises InputError for \\u without four digits."""
    place, number = int(text.startswith("\ufeff")), 1
    while place < len(text):
        line = LINE.match(text, place)
        if line is None or line.end() == place:  # a byte that the pattern does not know
            raise InputError(f"{name}, line {number:,} is no line of .properties.")
        if not line["rest"] and DAMAGED.search(line[0]):
            raise InputError(f"{name}, line {number:,} has \\u without four hexadecimal digits.")
        yield number, line
        number += len(re.findall(r"\r\n|[\r\n]", line[0]))
        place = line.end()


def tokens_of(raw: str, notation: Notation) -> Iterator[Token]:
    """Yield the tokens of a value: ends of lines inside of it, and quoted braces, are marks."""
    for token in notation.tokens(raw):
        if token.raw != token.text and is_end_of_line(token.raw):
            yield token._replace(is_mark=True)
        else:
            is_mark = token.raw[0] == "'" and len(token.raw) > 2 and not token.raw[1:-1].isalpha()
            yield Token(token.raw, "", True) if is_mark else token


def doubles_apostrophes(values: Iterable[str]) -> bool:
    """Return whether the values with arguments {0} have an apostrophe as two, as MessageFormat wants."""
    patterns = [value for value in values if ARGUMENT.search(value)]
    return any("''" in value for value in patterns) or not any(map(ALONE.search, patterns))
