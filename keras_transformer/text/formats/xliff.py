"""XLIFF 1.2 and 2: a translation for each unit that has none; all else stays byte for byte.

The parser is expat, because it says where each element stands; translate-toolkit, which the tests read these files
with, would write the file anew.
"""

import codecs
import html
import re
import xml.parsers.expat
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from keras_transformer.ground.errors import InputError
from keras_transformer.text.formats.encodings import XML as DECLARATION
from keras_transformer.text.formats.encodings import declared_text
from keras_transformer.text.formats.parts import Field, Notation, Part, unescaped
from keras_transformer.text.passages import Passage, Token

UNITS = "trans-unit", "segment"  # of XLIFF 1.2 and 2
CODES = frozenset("ph bpt ept it".split())  # whose content is code of another format
WHITE_SPACE = re.compile(r"[ \t]*\r?\n[ \t\r\n]*")
XML = Notation(re.compile(r"&[^;]*;"), unescaped, lambda text: html.escape(text, quote=False))
REVIEW = ' state="needs-review-translation" state-qualifier="mt-suggestion"'  # of XLIFF 1.2


class Event(NamedTuple):
    """What expat found: "start", "end", "text", "cdata" (where it begins or ends) or "other"."""

    kind: str
    name: str  # without the prefix of its namespace
    attributes: dict[str, str]
    start: int  # in bytes


class Element(NamedTuple):
    """An element by the numbers of the events that begin and end it."""

    first: int
    last: int


def xliff_parts(stream: Iterable[bytes], name: str, fields: Sequence[str]) -> Iterator[Part]:
    """Yield the parts of an XLIFF file: a field in each unit that has no target yet and may be translated.

    Raises InputError, with the line, if it is not XML, if it is not XLIFF, or not in the encoding that it tells.
    """
    content = declared_text(stream, name, DECLARATION).encode()
    events = events_of(content, name)
    starts = [event.start for event in events] + [len(content)]

    def raw(first: int, last: int) -> str:
        return content[starts[first] : starts[last]].decode()

    root = next(event for event in events if event.kind == "start")
    if root.name != "xliff":
        raise InputError(f"{name} is XML, but no XLIFF: its first element is <{root.name}>.")
    is_first_version = root.attributes.get("version", "").startswith("1")
    reached = 0
    for unit in units_of(events):
        if "source" not in unit or not has_text(events, unit["source"]):
            continue
        source, target = unit["source"], unit.get("target")
        name_of_target = re.findall(r"<([\w.-]*:)?", raw(source.first, source.first + 1))[0]
        tag = f"{name_of_target}target"
        field = Field(Passage(tokens_of(events, source, raw), XML.written))
        if target is None:
            after = unit.get("seg-source", source).last + 1
            yield raw(reached, after)
            yield f"{indent_of(events, source, raw)}<{tag}{REVIEW * is_first_version}>"
            yield field
            yield f"</{tag}>"
            reached = after
        elif not any(event.kind != "text" or raw(n, n + 1).strip() for n, event in inside(events, target)):
            opening = raw(target.first, target.first + 1)
            yield raw(reached, target.first)
            yield re.sub(r"\s*/>$", ">", opening)
            yield field
            yield f"</{tag}>" if opening.endswith("/>") else raw(target.last, target.last + 1)
            reached = target.last + 1
    yield raw(reached, len(events))


def events_of(content: bytes, name: str) -> list[Event]:
    """Return the events of an XML file, which are all of it. Raises InputError, with the line, if it is not XML."""
    events: list[Event] = []
    parser = xml.parsers.expat.ParserCreate("utf-8")

    if content.startswith(codecs.BOM_UTF8):
        events.append(Event("other", "", {}, 0))

    def note(kind: str, element: str = "", attributes: dict[str, str] | None = None) -> None:
        events.append(Event(kind, element.rpartition(":")[2], attributes or {}, parser.CurrentByteIndex))

    parser.XmlDeclHandler = lambda *_: note("other")
    parser.StartElementHandler = lambda element, attributes: note("start", element, attributes)
    parser.EndElementHandler = lambda element: note("end", element)
    parser.CharacterDataHandler = lambda text: note("text")
    parser.StartCdataSectionHandler = parser.EndCdataSectionHandler = lambda: note("cdata")
    parser.DefaultHandler = lambda text: note("other")  # it also keeps references to entities as they are
    try:
        parser.Parse(content, True)
    except xml.parsers.expat.ExpatError as error:
        reason = xml.parsers.expat.ErrorString(error.code)
        raise InputError(f"{name}, line {error.lineno:,} is not XML: {reason}.") from None
    return events


def units_of(events: Sequence[Event]) -> Iterator[dict[str, Element]]:
    """Yield the elements of each unit that may be translated, by name: source, seg-source, target."""
    stack: list[tuple[str, int, bool]] = []  # name, number of the event, whether it may be translated
    unit: dict[str, Element] = {}
    for number, event in enumerate(events):
        if event.kind == "start":
            may = event.attributes.get("translate", "yes") != "no" and (not stack or stack[-1][2])
            stack.append((event.name, number, may))
            if event.name in UNITS:
                unit = {}
        elif event.kind == "end":
            name, first, may = stack.pop()
            if name in UNITS and may:
                yield unit
            elif stack and stack[-1][0] in UNITS and name in ("source", "seg-source", "target"):
                unit[name] = Element(first, number)


def inside(events: Sequence[Event], element: Element) -> Iterator[tuple[int, Event]]:
    """Yield what an element contains, with the numbers of the events."""
    for number in range(element.first + 1, element.last):
        yield number, events[number]


def indent_of(events: Sequence[Event], source: Element, raw: Callable[[int, int], str]) -> str:
    """Return the white space before a source."""
    first = source.first
    while events[first - 1].kind == "text" and not raw(first - 1, first).strip():
        first -= 1
    return raw(first, source.first)


def has_text(events: Sequence[Event], element: Element) -> bool:
    return any(event.kind == "text" for _, event in inside(events, element))


def tokens_of(events: Sequence[Event], source: Element, raw: Callable[[int, int], str]) -> Iterator[Token]:
    """Yield the tokens of a source: elements are marks, with their content if that is code, or not to translate."""
    in_cdata, code_depth, code, written = False, 0, "", ""
    for number, event in inside(events, source):
        text = raw(number, number + 1)
        if written and event.kind != "text":
            yield from XML.tokens_of_lines(written, WHITE_SPACE)
            written = ""
        is_code = event.kind == "start" and (
            event.name in CODES
            or event.attributes.get("translate") == "no"
            or event.attributes.get("mtype") == "protected"
        )
        if code_depth or is_code:
            code += text
            code_depth += (event.kind == "start") - (event.kind == "end")
            if not code_depth:
                yield Token(code, "", True)
                code = ""
        elif event.kind == "cdata":
            in_cdata = not in_cdata
        elif event.kind == "text":  # of which expat has one for each line
            written += XML.written(text) if in_cdata else text  # the target has no CDATA
        elif event.kind == "start" and events[number + 1].kind == "end":  # <x></x> is as <x/>, whose end is no text
            yield Token(raw(number, number + 2), "", True)
        elif event.kind != "end" or events[number - 1].kind != "start":
            yield Token(text, "", True)
    yield from XML.tokens_of_lines(written, WHITE_SPACE)
