"""HTML: the texts of its blocks; tags inside a sentence go with it, and all else stays byte for byte.

The parser is Python's own, because it says where each tag stands; trees, as other parsers return, are written anew.
"""

import collections
import html
import re
from collections.abc import Iterable, Iterator, Sequence
from html.parser import HTMLParser
from typing import NamedTuple

from keras_transformer.text.formats.attributes import WHITE_SPACE, texts_in
from keras_transformer.text.formats.encodings import META, XML, declared_text
from keras_transformer.text.formats.endings import ending_of
from keras_transformer.text.formats.parts import Field, Notation, Part, TranslatedError, located, unescaped
from keras_transformer.text.passages import Inner, Passage, Token

VOID = frozenset(
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr".split()
)
KEPT = frozenset("code kbd math object pre rp rt rtc samp svg template var".split())  # unless translate="yes"
RAW = frozenset("iframe noembed noframes plaintext script style textarea xmp".split())  # never: they have no markup
FOREIGN = frozenset(["svg", "math"])  # inside of them a slash closes an element
XHTML = "xhtml", "xht"  # endings of names
HTML_IN_FOREIGN = frozenset("foreignobject desc title annotation-xml mi mo mn ms mtext".split())
BLOCKS = frozenset(  # those that HTML shows as blocks, and whose text is one of its own; all others are inline
    "address article aside audio base blockquote body br button canvas caption center col colgroup datalist dd details "
    "dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup "
    "hr html legend li listing main menu nav noframes noscript ol optgroup option p plaintext pre search section "
    "select summary table tbody td textarea tfoot th thead title tr ul video xmp".split()
)
OPTIONAL_END = frozenset(  # elements that HTML closes on its own
    "html head body li dt dd p rb rt rtc rp optgroup option colgroup caption thead tbody tfoot tr td th".split()
)
BEFORE_ROW = "caption colgroup thead tbody tfoot tr td th"
CLOSES: dict[str, tuple[frozenset[str], frozenset[str]]] = {  # https://html.spec.whatwg.org/#optional-tags
    name: (frozenset(closed.split()), frozenset(within.split()))
    for names, closed, within in (  # these start tags close such elements, unless they are outside of one of the last
        ("li", "li", "ul ol menu dir"),
        ("dt dd", "dt dd", "dl"),
        ("rb rt rp", "rb rt rp", "ruby rtc"),
        ("rtc", "rb rt rtc rp", "ruby"),
        ("option", "option", "select datalist optgroup"),
        ("optgroup", "option optgroup", "select"),
        ("td th", "td th caption colgroup", "table"),
        ("tr", "caption colgroup tr td th", "table"),
        ("thead tbody tfoot", BEFORE_ROW, "table"),
        ("colgroup", "caption colgroup", "table"),
        ("body", "head", ""),
        (
            "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer form "
            "h1 h2 h3 h4 h5 h6 header hgroup hr listing main menu nav ol p plaintext pre search section summary table "
            "ul xmp",
            "p",
            "applet button caption html marquee object table td template th",
        ),
    )
    for name in names.split()
}
ENTITY = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);?")
HTML = Notation(ENTITY, unescaped, lambda text: html.escape(text, quote=False).replace("\xa0", "&nbsp;"))
UNFINISHED = re.compile(r"<[A-Za-z/!?]")  # what the parser returns as text, because nothing ends it


class Event(NamedTuple):
    """What the parser found: "start", "end", "empty" (a tag), "slash" (<a/>), "text", "comment" or "other"."""

    kind: str
    name: str
    attributes: dict[str, str | None]
    place: tuple[int, int]  # line from 1, and character of that line


class _Events(HTMLParser):
    def __init__(self, text: str):
        super().__init__(convert_charrefs=False)
        self.events: list[Event] = []
        self.feed(text)
        if self.cdata_elem is None and UNFINISHED.match(self.rawdata):
            self._note("text")  # the parser would look for the end of each tag in it, in quadratic time
        else:
            self.close()

    def _note(self, kind: str, name: str = "", attributes: Sequence[tuple[str, str | None]] = ()) -> None:
        self.events.append(Event(kind, name, dict(reversed(attributes)), self.getpos()))  # the first of a name counts

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note("empty" if tag in VOID else "start", tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note("empty" if tag in VOID else "slash", tag, attrs)

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

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        """Take <![x]> as the comment that it is in HTML; Python knows some sections alone."""
        try:
            return super().parse_marked_section(i, report)
        except AssertionError:
            return self.parse_bogus_comment(i, report)

    def unknown_decl(self, data: str) -> None:
        self._note("comment")  # CDATA, which HTML reads as a comment


def html_parts(stream: Iterable[bytes], name: str, fields: Sequence[str]) -> Iterator[Part]:
    """Yield the parts of an HTML file: a field for each block of text.

    Code, scripts and what has translate="no" or the class notranslate stay as they are. Raises InputError if
    the file is not in the encoding that it tells, and when all parts are yielded TranslatedError if an element is not
    closed, with its line.
    """
    text = declared_text(stream, name, META, XML)
    walk = _Walk(is_xml=text.removeprefix("\ufeff").startswith("<?xml") or ending_of(name) in XHTML)
    for event, raw in with_raw(text):
        if walk.is_unfinished(event, text):
            break
        yield from located(walk.parts(event, raw), f"{name}, line {event.place[0]:,}")
    yield from located(walk.end(text), f"{name}, at its end")
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


class _Open(NamedTuple):
    """An element that is open, with its line, and whether its text is translated."""

    name: str
    line: int
    translates: bool


class _Walk:
    """What is known at a place of an HTML text."""

    def __init__(self, is_xml: bool = False):
        self.is_xml = is_xml  # where a slash closes every element
        self.tokens: list[Token] = []  # of the block so far
        self.open: list[_Open] = []
        self.counts = collections.Counter[str]()  # of the names in `open`
        self.kept: list[Token] = []  # what is read of an element that stays
        self.is_inline = False  # whether a sentence goes on behind it
        self.unclosed: list[tuple[int, str]] = []
        self.last = "", ""  # kind and name of the event before
        self._length = 0

    @property
    def translates(self) -> bool:
        return not self.open or self.open[-1].translates

    def is_unfinished(self, event: Event, text: str) -> bool:
        """Return whether an event is the rest of the text, which begins with a tag or comment that does not end."""
        if event.kind != "text" or not self.translates or not UNFINISHED.match(text, self._length):
            return False
        self.unclosed.append((event.place[0], "a tag or comment"))
        return True

    def parts(self, event: Event, raw: str) -> Iterator[Part]:
        """Yield the parts that are complete once this was read."""
        self._length += len(raw)
        is_start = event.kind == "start" or (event.kind == "slash" and not self._slash_closes(event.name))
        was_kept = not self.translates
        if is_start:
            self._close_before(event.name)
            if was_kept and self.translates:  # without an end tag
                yield from self._end_kept()
                was_kept = False
        token = Token(raw, "", True, self._texts_in(event, raw))
        if is_start:
            is_raw = not self.translates and any(self.counts[name] for name in RAW)
            may = not is_raw and translates(event, self.translates)
            self.open.append(_Open(event.name, event.place[0], may))
            self.counts[event.name] += 1
        elif event.kind == "end":
            self._close(event.name)
        if not self.translates and not was_kept:  # an element that stays begins, or goes on behind translate="yes"
            self.is_inline = is_start and event.name not in BLOCKS
            self.kept = [token]
        elif not self.translates:
            self.kept.append(token)
        elif was_kept:
            self.is_inline = self.is_inline and not is_start and event.name not in BLOCKS
            self.kept.append(token)
            yield from self._end_kept()
        elif event.kind == "text":
            self.tokens += HTML.tokens_of_lines(raw, WHITE_SPACE)
        elif event.kind == "comment" or (event.name and event.name not in BLOCKS):
            if event.kind == "end" and self.last == ("start", event.name):  # an icon is one mark
                token = joined([self.tokens.pop(), token])
            self.tokens.append(token)
        else:
            yield from self._end_block()
            yield part_of(token)
        self.last = event[:2]

    def _texts_in(self, event: Event, raw: str) -> tuple[Inner, ...]:
        """Return the texts in a tag; those of an element whose own text stays are translated if it may be."""
        is_tag = event.kind in ("start", "empty", "slash")
        if not is_tag or not event.attributes or not may_be_translated(event, self.translates):
            return ()
        return tuple(texts_in(raw, event.name, event.attributes, self.is_xml))

    def _end_kept(self) -> Iterator[Part]:
        token = joined(self.kept)
        self.kept = []
        if self.is_inline:
            self.tokens.append(token)
        else:
            yield from self._end_block()
            yield part_of(token)

    def _slash_closes(self, name: str) -> bool:
        """Return whether <name/> has no end tag: in XML, and as an element of SVG or MathML."""
        names = [each.name for each in self.open if each.name in FOREIGN | HTML_IN_FOREIGN]
        return self.is_xml or name in FOREIGN or (bool(names) and names[-1] in FOREIGN)

    def _close_before(self, name: str) -> None:
        """Close the elements that a start tag closes, such as <li> the <li> before it."""
        closed, within = CLOSES.get(name, (frozenset(), frozenset()))
        if not any(self.counts[each] for each in closed):
            return
        has_closed = False
        for element in reversed(self.open):
            if element.name in closed:
                self._close(element.name)
                has_closed = True
            elif has_closed or element.name in within:
                return

    def _close(self, name: str) -> None:
        """Take an element that ends, and those inside of it that were not closed, from those that are open."""
        if not self.counts[name]:
            late = [place for place, (_, element) in enumerate(self.unclosed) if element == f"<{name}>"]
            if late:  # <p><b>...</p></b>
                del self.unclosed[late[-1]]
            return
        while True:
            element = self.open.pop()
            self.counts[element.name] -= 1
            if element.name == name:
                return
            if element.name not in OPTIONAL_END:
                self.unclosed.append((element.line, f"<{element.name}>"))

    def _end_block(self) -> Iterator[Part]:
        if self.tokens:
            yield Field(Passage(self.tokens, written_in_xml if self.is_xml else HTML.written))
            self.tokens = []

    def end(self, text: str) -> Iterator[Part]:
        """Yield the last parts, and what was not read of the text."""
        yield from self._end_block()
        yield joined(self.kept).raw + text[self._length :]
        self.unclosed += [(each.line, f"<{each.name}>") for each in self.open if each.name not in OPTIONAL_END]
        self.unclosed.sort()


def joined(marks: Sequence[Token]) -> Token:
    """Return marks that follow each other as one."""
    inner, length = [], 0
    for mark in marks:
        inner += [text._replace(start=text.start + length, end=text.end + length) for text in mark.inner]
        length += len(mark.raw)
    return Token("".join(mark.raw for mark in marks), "", True, tuple(inner))


def part_of(mark: Token) -> Part:
    """Return a mark that stands between texts: a field if texts are inside of it."""
    return Field(Passage([mark])) if mark.inner else mark.raw


def written_in_xml(text: str) -> str:
    """Return how a text is written in XHTML, which has no name for a no-break space unless a DTD gives it one."""
    return html.escape(text, quote=False).replace("\xa0", "&#160;")


def translates(event: Event, of_parent: bool) -> bool:
    """Return whether the text of an element is translated; of_parent: whether that of the one around it is."""
    is_told = told(event) is not None
    return event.name not in RAW and may_be_translated(event, of_parent) and (is_told or event.name not in KEPT)


def may_be_translated(event: Event, of_parent: bool) -> bool:
    """Return whether an element is translated by what it tells: its attributes, and its text if it is no code."""
    value = told(event)
    is_kept = "notranslate" in (event.attributes.get("class") or "").split()
    return of_parent and not is_kept if value is None else value


def told(event: Event) -> bool | None:
    """Return what the attribute `translate` of an element says; None: nothing."""
    if "translate" not in event.attributes:
        return None
    return {"": True, "yes": True, "no": False}.get((event.attributes["translate"] or "").strip().lower())
