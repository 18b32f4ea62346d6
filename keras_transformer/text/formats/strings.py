"""Apple's .strings: each value is translated where it stands, and nothing else changes.

The format: https://developer.apple.com/library/archive/documentation/Cocoa/Conceptual/LoadingResources/Strings/. Xcode
and what translators use also write it as a property list in XML.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from keras_transformer.ground.errors import InputError
from keras_transformer.ground.files import read_whole_lines
from keras_transformer.text.formats.encodings import decoded, in_encoding
from keras_transformer.text.formats.entries import Entries, field_of
from keras_transformer.text.formats.parts import CODE_UNITS, Notation, Part, character_of
from keras_transformer.text.formats.xml_events import XML, XmlText

UTF_16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
TOKEN = re.compile(
    r"(?P<between>(?:\s|/\*(?:[^*]|\*(?!/))*+\*/|//[^\r\n]*+)++)|(?P<quoted>\"(?:[^\"\\]|\\[\s\S])*+\")"
    r"|(?P<bare>[\w.$/:-]++)|(?P<sign>[=;])"
)
ESCAPE = re.compile(CODE_UNITS.replace(r"\\u", r"\\[Uu]") + r"|\\[0-7]{1,3}|\\[\s\S]")
MEANINGS = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))
WRITTEN = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
ORDERS = "key", "=", "value", ";"


def meaning_of(escape: str) -> str:
    """Return what an escape such as \\n or \\U00e9 means."""
    if escape[1] in "Uu" and len(escape) > 2:
        return character_of(escape.replace("\\U", "\\u"))
    return chr(int(escape[1:], 8)) if escape[1] in "01234567" else MEANINGS.get(escape[1], escape[1])


NOTATION = Notation(ESCAPE, meaning_of, lambda text: "".join(WRITTEN.get(character, character) for character in text))


def strings_parts(stream: Iterable[bytes], name: str, fields: Sequence[str]) -> Iterator[Part]:
    """Yield the parts of a file: a field for each value. UTF-16 with a byte order mark stays UTF-16, but not in XML.

    What was left, and why, is logged at the end. Raises InputError, with the line, for what is neither "key" = "value";
    nor XML; and for a key that is there twice.
    """
    content = b"".join(stream)
    if content.startswith(b"bplist"):
        raise InputError(f"{name} is a binary property list: make XML of it first, with plutil -convert xml1.")
    if content.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xfe\xff \t\r\n").startswith(b"<"):
        yield from parts_of_list(XmlText.read([content], name), name)
    elif encoding := UTF_16.get(content[:2]):
        yield from in_encoding(parts_of(decoded(content, encoding, name), name), encoding)
    else:
        yield from parts_of("".join(read_whole_lines(content.splitlines(keepends=True), name)), name)


def parts_of_list(xml: XmlText, name: str) -> Iterator[Part]:
    """Yield the parts of a property list in XML: a field for each <string> that is directly in its dictionary."""
    xml.root("plist", "property list", name)
    entries, reached = Entries(name), 0
    elements = [each for dictionary in itertools.islice(xml.elements("dict"), 1) for each in xml.children(dictionary)]
    kinds = [xml.events[each.first].name for each in elements]
    for each, kind in zip(elements, kinds, strict=True):
        if kind == "key":
            entries.note_key(xml.line(each.first), XML.text(xml.inside(each)))
    for each, kind in zip(elements, kinds, strict=True):
        raw = xml.inside(each)
        reason = "" if kind == "string" and "<" not in raw else "not plain texts"
        if kind != "key" and not entries.is_left(XML.text(raw), reason):
            yield xml.raw(reached, each.first + 1)
            yield from field_of(XML.passage(raw), XML.text, f"{name}, line {xml.line(each.first):,}")
            reached = each.last
    yield xml.raw(reached, len(xml.events))
    entries.report()


def parts_of(text: str, name: str) -> Iterator[Part]:
    """Yield the parts of a text."""
    entries, tokens = Entries(name), list(tokens_of(text, name))
    for number, line, found in tokens:
        if ORDERS[number] == "key" and found["between"] is None:
            entries.note_key(line, NOTATION.text(found[0].strip('"')))
    yield text[: text.startswith("\ufeff")]
    for number, line, found in tokens:
        raw = found[0]
        is_value = ORDERS[number] == "value" and found["between"] is None
        if not is_value or entries.is_left(NOTATION.text(raw[1:-1]), "" if found["quoted"] else "without quotes"):
            yield raw
            continue
        yield '"'
        yield from field_of(NOTATION.passage(raw[1:-1]), NOTATION.text, f"{name}, line {line:,}")
        yield '"'
    entries.report()


def tokens_of(text: str, name: str) -> Iterator[tuple[int, int, re.Match[str]]]:
    """Yield the tokens of a text, each with its place in ORDERS and its line; "key"; is "key" = "key";."""
    place, line, number = int(text.startswith("\ufeff")), 1, 0
    while place < len(text):
        found = TOKEN.match(text, place)
        if found is None:
            raise InputError(
                f"{name}, line {line:,} is {text[place : place + 40].splitlines()[0]!r}, where {wanted(number)}."
            )
        if number == 1 and found["sign"] == ";":
            number = 3
        is_right = found["sign"] == ORDERS[number] if number % 2 else not found["sign"]
        if found["between"] is None and not is_right:
            raise InputError(f"{name}, line {line:,} has {found[0][:40]!r} where {wanted(number)}.")
        yield number, line, found
        number = number if found["between"] is not None else (number + 1) % len(ORDERS)
        line += found[0].count("\n")
        place = found.end()
    if number:
        raise InputError(f"{name}, line {line:,} ends where {wanted(number)}.")


def wanted(number: int) -> str:
    kind = ORDERS[number]
    return f"{kind!r} is due" if number % 2 else f'a {kind} such as "text" is due'
