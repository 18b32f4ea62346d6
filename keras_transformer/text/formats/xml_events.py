"""XML as the events that a parser finds, each with its place: what is not changed stays byte for byte.

The parser is expat, because it says where each element stands. References to entities stay as they are written.
"""

import bisect
import codecs
import html
import re
import xml.parsers.expat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from keras_transformer.ground.errors import InputError
from keras_transformer.text.formats.encodings import XML as DECLARATION
from keras_transformer.text.formats.encodings import declared_text
from keras_transformer.text.formats.parts import Notation, unescaped

XML = Notation(re.compile(r"&[^&;]*;"), unescaped, lambda text: html.escape(text, quote=False))
NO_ATTRIBUTES: Mapping[str, str] = {}  # one for all events: a file can have millions
WHITE_SPACE = re.compile(r"(?<![ \t])[ \t]*+\r?\n[ \t\r\n]*")


class Event(NamedTuple):
    """What expat found: "start", "end", "text", "cdata" (where it begins or ends) or "other"."""

    kind: str
    name: str  # without the prefix of its namespace
    attributes: Mapping[str, str]
    start: int  # in bytes


class Element(NamedTuple):
    """An element by the numbers of the events that begin and end it."""

    first: int
    last: int


class XmlText:
    """A file of XML in UTF-8, and its events, which are all of it."""

    def __init__(self, content: bytes, events: Sequence[Event]):
        self.content, self.events = content, events
        self._starts = [event.start for event in events] + [len(content)]
        self._lines = [found.end() for found in re.finditer(b"\n", content)]
        self._ends, opened = [0] * len(events), []
        for number, event in enumerate(events):
            if event.kind == "start":
                opened.append(number)
            elif event.kind == "end":
                self._ends[opened.pop()] = number

    @classmethod
    def read(cls, stream: Iterable[bytes], name: str, takes_declarations: bool = True) -> "XmlText":
        """Return a file. Raises InputError, with the line, if it is not XML, or not in the encoding that it tells.

        For `takes_declarations` see `events_of`.
        """
        content = declared_text(stream, name, DECLARATION).encode()
        return cls(content, events_of(content, name, takes_declarations))

    def raw(self, first: int, last: int) -> str:
        """Return how events[first:last] are written."""
        return self.content[self._starts[first] : self._starts[last]].decode()

    def root(self, element: str, kind: str, name: str) -> Event:
        """Return the event that begins the first element. Raises InputError if it has another name."""
        root = next(event for event in self.events if event.kind == "start")
        if root.name != element:
            raise InputError(f"{name} is XML, but no {kind}: its first element is <{root.name}>.")
        return root

    def line(self, number: int) -> int:
        """Return the line of an event, counted from 1."""
        return bisect.bisect_right(self._lines, self._starts[number]) + 1

    def element(self, first: int) -> Element:
        """Return the element that an event begins."""
        return Element(first, self._ends[first])

    def children(self, element: Element) -> Iterator[Element]:
        """Yield the elements that are directly in another."""
        number = element.first + 1
        while number < element.last:
            if self.events[number].kind == "start":
                yield self.element(number)
                number = self._ends[number]
            number += 1

    def elements(self, name: str) -> Iterator[Element]:
        """Yield the elements of a name."""
        for number, event in enumerate(self.events):
            if event.kind == "start" and event.name == name:
                yield self.element(number)

    def inside(self, element: Element) -> str:
        """Return how the content of an element is written; "" for <x/>."""
        return self.raw(element.first + 1, element.last)

    def opening(self, element: Element) -> str:
        """Return the tag that begins an element, without the slash of one that is empty."""
        return re.sub(r"\s*/>$", ">", self.raw(element.first, element.first + 1))

    def closing(self, element: Element) -> str:
        """Return the tag that ends an element, also for one that is written as <target/>."""
        name = re.match(r"<([^\s/>]+)", self.raw(element.first, element.first + 1))
        return self.raw(element.last, element.last + 1) or (f"</{name[1]}>" if name else "")


def events_of(content: bytes, name: str, takes_declarations: bool) -> list[Event]:
    """Return the events of an XML file, which are all of it.

    takes_declarations: whether it may have a <!DOCTYPE>, whose entities can make attributes a hundred times as long.
    Raises InputError, with the line, if it is not XML, or if it has entities that are files or made of others.
    """
    events: list[Event] = []
    parser = xml.parsers.expat.ParserCreate("utf-8")

    if content.startswith(codecs.BOM_UTF8):
        events.append(Event("other", "", NO_ATTRIBUTES, 0))

    def note(kind: str, element: str = "", attributes: Mapping[str, str] | None = None) -> None:
        events.append(Event(kind, element.rpartition(":")[2], attributes or NO_ATTRIBUTES, parser.CurrentByteIndex))

    def check_entity(entity: str, is_parameter: int, value: str | None, *_: object) -> None:
        if value is None or is_parameter or re.search(r"[&%]\w", value):
            kind = "is a file or another address" if value is None else "is made of others, or of declarations"
            raise InputError(
                f"{name}, line {parser.CurrentLineNumber:,} has the entity {entity!r}, which {kind}: write what it "
                "stands for in its place."
            )

    def refuse_declarations(*_: object) -> None:
        raise InputError(f"{name}, line {parser.CurrentLineNumber:,} has a <!DOCTYPE>, which such a file may not have.")

    if not takes_declarations:
        parser.StartDoctypeDeclHandler = refuse_declarations
    parser.XmlDeclHandler = lambda *_: note("other")
    parser.StartElementHandler = lambda element, attributes: note("start", element, attributes)
    parser.EndElementHandler = lambda element: note("end", element)
    parser.CharacterDataHandler = lambda text: note("text")
    parser.StartCdataSectionHandler = parser.EndCdataSectionHandler = lambda: note("cdata")
    parser.EntityDeclHandler = check_entity
    parser.DefaultHandler = lambda text: note("other")  # it also keeps references to entities as they are
    try:
        parser.Parse(content, True)
    except xml.parsers.expat.ExpatError as error:
        reason = xml.parsers.expat.ErrorString(error.code)
        raise InputError(f"{name}, line {error.lineno:,} is not XML: {reason}.") from None
    return events
