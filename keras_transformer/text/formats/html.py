"""HTML: the texts of its blocks; tags inside a sentence go with it, and all else stays byte for byte.

The parser is Python's own, because it says where each tag stands; trees, as other parsers return, are written anew.
"""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from html.parser import HTMLParser
from typing import NamedTuple

from keras_transformer.ground.files import read_whole_lines
from keras_transformer.text.formats.parts import Field, Notation, Part, TranslatedError, unescaped
from keras_transformer.text.passages import Passage, Token

VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
OPTIONAL_END = frozenset(  # elements that HTML closes on its own
    "html head body li dt dd p rt rp optgroup option colgroup caption thead tbody tfoot tr td th".split()
)
INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark q s samp small span strike "
    "strong sub sup time tt u var wbr".split()
)
KEPT = frozenset(
    "code iframe kbd math noembed object plaintext pre samp script style svg template textarea var xmp".split()
)
ENTITY = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);?")
WHITE_SPACE = re.compile(r"[ \t\f]*\r?\n[ \t\f\r\n]*")
HTML = Notation(ENTITY, unescaped, lambda text: html.escape(text, quote=False).replace("\xa0", "&nbsp;"))
UNFINISHED = re.compile(r"<[A-Za-z/!?]")  # what the parser returns as text, because nothing ends it


class Event(NamedTuple):
    """What the parser found: "start", "end", "empty" (a tag), "text", "comment" or "other"."""

    kind: str
    name: str
    attributes: dict[str, str | None]
    place: tuple[int, int]  # line from 1, and character of that line


class _Events(HTMLParser):
    def __init__(self, text: str):
        super().__init__(convert_charrefs=False)
        self.events: list[Event] = []
        self.feed(text)
        self.close()

    def _note(self, kind: str, name: str = "", attributes: Sequence[tuple[str, str | None]] = ()) -> None:
        self.events.append(Event(kind, name, dict(attributes), self.getpos()))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note("empty" if tag in VOID else "start", tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note("empty" if tag in VOID else "start", tag, attrs)  # HTML ignores the slash of <b/>

    def handle_endtag(self, tag: str) -> None:
        self._note("end", tag)

    def handle_data(self, data: str) -> None:
        self._note("text")

    def handle_entityref(self, name: str) -> None:
        self._note("text")

    def handle_charref(self, name: str) -> None:
        self._note("text")

    def handle_comment(self, data: str) -> None:
        self._note("comment")

    def handle_decl(self, decl: str) -> None:
        self._note("other")

    def handle_pi(self, data: str) -> None:
        self._note("other")

    def parse_pi(self, i: int) -> int:
        """Take code of PHP as a whole, which HTML would end at its first ">"."""
        end = self.rawdata.find("?>", i) if self.rawdata.startswith(("<?php", "<?="), i) else -1
        if end < 0:
            return super().parse_pi(i)
        self.handle_pi(self.rawdata[i + 2 : end])
        return end + 2

    def unknown_decl(self, data: str) -> None:
        self._note("comment")  # CDATA, which HTML reads as a comment


def html_parts(stream: Iterable[bytes], name: str, fields: Sequence[str]) -> Iterator[Part]:
    """Yield the parts of an HTML file: a field for each block of text.

    Code, scripts and what has translate="no" or the class notranslate stay as they are. When all parts are yielded,
    raises TranslatedError if an element is not closed, with its line.
    """
    text = "".join(read_whole_lines(stream, name))
    walk = _Walk()
    for event, raw in with_raw(text):
        if walk.is_unfinished(event, text):
            break
        yield from walk.parts(event, raw)
    yield from walk.end(text)
    if walk.unclosed:
        line, element = walk.unclosed[0]
        more = f", and {len(walk.unclosed) - 1} more are not" if len(walk.unclosed) > 1 else ""
        raise TranslatedError(
            f"{name}, line {line:,}: {element} is not closed{more}. The output has all translations; its tags are "
            "those of the input."
        )


def with_raw(text: str) -> Iterator[tuple[Event, str]]:
    """Yield what an HTML text consists of, and how each of it is written: together that is the text."""
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    events = _Events(text).events
    places = [starts[event.place[0] - 1] + event.place[1] for event in events] + [len(text)]
    if places[0]:
        yield Event("other", "", {}, (1, 0)), text[: places[0]]
    for event, start, end in zip(events, places, places[1:], strict=False):
        yield event, text[start:end]


class _Walk:
    """What is known at a place of an HTML text."""

    def __init__(self):
        self.tokens: list[Token] = []  # of the block so far
        self.open: list[tuple[str, int]] = []  # elements, with their lines
        self.kept, self.kept_depth = (
            "",
            0,
        )  # an element that stays as it is: what is read of it, and its place in `open`
        self.unclosed: list[tuple[int, str]] = []
        self._length = 0

    def is_unfinished(self, event: Event, text: str) -> bool:
        """Return whether an event is the rest of the text, which begins with a tag or comment that does not end."""
        if event.kind != "text" or self.kept_depth or not UNFINISHED.match(text, self._length):
            return False
        self.unclosed.append((event.place[0], "a tag or comment"))
        return True

    def parts(self, event: Event, raw: str) -> Iterator[Part]:
        """Yield the parts that are complete once this was read."""
        self._length += len(raw)
        was_kept = self.kept_depth > 0
        if event.kind == "start":
            self.open.append((event.name, event.place[0]))
            if not was_kept and is_kept(event):
                self.kept_depth = len(self.open)
        elif event.kind == "end":
            self._close(event)
        if self.kept_depth:
            self.kept += raw
            if len(self.open) < self.kept_depth:
                yield from self._end_kept(event.name)
        elif event.kind == "text":
            self.tokens += HTML.tokens_of_lines(raw, WHITE_SPACE)
        elif event.kind == "comment" or event.name in INLINE:
            self.tokens.append(Token(raw, "", True))
        else:
            yield from self._end_block()
            yield raw

    def _end_kept(self, name: str) -> Iterator[Part]:
        raw, self.kept, self.kept_depth = self.kept, "", 0
        if name in INLINE:
            self.tokens.append(Token(raw, "", True))
        else:
            yield from self._end_block()
            yield raw

    def _close(self, event: Event) -> None:
        """Take an element that ends, and those inside of it that were not closed, from those that are open."""
        if event.name not in [name for name, _ in self.open]:
            return
        while True:
            name, line = self.open.pop()
            if name == event.name:
                return
            if name not in OPTIONAL_END:
                self.unclosed.append((line, f"<{name}>"))

    def _end_block(self) -> Iterator[Part]:
        if self.tokens:
            yield Field(Passage(self.tokens, HTML.written))
            self.tokens = []

    def end(self, text: str) -> Iterator[Part]:
        """Yield the last parts, and what was not read of the text."""
        yield from self._end_block()
        yield self.kept + text[self._length :]
        self.unclosed += [(line, f"<{name}>") for name, line in self.open if name not in OPTIONAL_END]
        self.unclosed.sort()


def is_kept(event: Event) -> bool:
    """Return whether an element is none to translate."""
    classes = (event.attributes.get("class") or "").split()
    translate = (event.attributes.get("translate") or "").lower()
    return event.name in KEPT or translate == "no" or "notranslate" in classes
