"""The text of WordprocessingML: what stands in the runs of a paragraph, and runs that have its translation.

A stretch of text is read as HTML would have it: runs that look otherwise than most of it are a pair, <g1>...</g1>, as
links and insertions are; what is no text, such as a picture or the number of a note, is a mark, <x2/>.
"""

import bisect
import collections
import html
import itertools
import logging
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from keras_transformer.ground.errors import InputError
from keras_transformer.text.formats.xml_events import XML, Element, XmlText
from keras_transformer.text.passages import Passage, Token

log = logging.getLogger("keras_transformer")

CONTAINERS = frozenset("hyperlink ins moveTo smartTag customXml sdt dir bdo".split())  # of runs
DROPPED = frozenset(["proofErr", "lastRenderedPageBreak"])  # what a program notes, and finds again
BOUND = re.compile(r"<(?:\w+:)?(?:dataBinding|dropDownList|comboBox|date|docPartObj)\b")  # text that is a value
MOST_DEPTH = 50  # of containers in each other
NO_CHARACTER = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff\ud800-\udfff]")  # that XML has not
CHARACTERS = {"noBreakHyphen": "\u2011", "softHyphen": "\u00ad", "cr": "\n"}
SPLITTING = frozenset(["tab", "ptab", "br"])
OF_FIELD = frozenset(["begin", "instruction", "separate", "end"])
PREFIX = re.compile(r"<(?:([^\s:/<>]+):)?")
ALIKE = re.compile(r"<(?:\w+:)?(?:lang|noProof)\b[^>]*/>|\s+")  # in properties of runs: not seen
LINE_END = re.compile(r"[\r\n]\s*")
LINK = re.compile(r"(?<!\s)\s*HYPERLINK\b")
AS_IT_IS = re.compile(r"<!\[CDATA\[(?P<text>.*?)\]\]>|<!--[^-]*(?:-[^-]+)*-->|<\?.*?\?>", re.DOTALL)
SIGN = re.compile(r"<(?P<ends>/)?(?P<kind>[gxn])(?P<number>\d*)/?>")
BREAK = "<n/>"
NAMES = {BREAK: "br", "\u2011": "noBreakHyphen", "\u00ad": "softHyphen"}
ELEMENTS = re.compile(f"({'|'.join(NAMES)})")


class Item(NamedTuple):
    """What a paragraph has, and the events [first, last) that it is.

    kind: "text", "mark", "open" and "close" of a container, "split", or of a field "begin", "instruction", "separate"
    and "end". text: of a text, or an instruction. run: the run in which it stands, if it does; format: the properties
    of that. begins, ends: whether it is the first and the last thing in it.
    """

    kind: str
    first: int
    last: int
    text: str = ""
    run: Element | None = None
    format: str = ""
    begins: bool = True
    ends: bool = True

    @property
    def whole(self) -> tuple[int, int]:
        """The events from the begin of its run, if it is the first there, to the end of it, if it is the last."""
        first = self.run.first if self.run and self.begins else self.first
        return first, self.run.last + 1 if self.run and self.ends else self.last


class Stretch:
    """A stretch of text of a paragraph, as tokens with signs for marks: the events [first, last) and `items`."""

    def __init__(self, items: Sequence[Item], document: "DocumentXml"):
        self.first, self.last = items[0].whole[0], items[-1].whole[1]
        self._begin, self._end, self._document = items[0], items[-1], document
        self.tokens: list[Token] = []
        self._signs: list[Item | str] = []  # by number: a mark, what opens a container, or how runs of a pair look
        self._closing: dict[int, Item] = {}  # of containers
        self._formats: dict[int, str] = {}  # of most text inside of a container
        self._format = self._read(items)
        self.raw = "".join(token.raw for token in self.tokens)

    def passage(self) -> Passage:
        return Passage(self.tokens, written)

    def _read(self, items: Sequence[Item]) -> str:
        """Note the tokens of items, which have all containers whole, and return how most of the text looks."""
        counts, looks = collections.Counter[str](), dict[str, str]()
        for item in outermost(items):
            if item.kind == "text":
                counts[looks.setdefault(ALIKE.sub("", item.format), item.format)] += len(item.text)
        most = counts.most_common(1)[0][0] if counts else next((each.format for each in items if each.format), "")
        pair: tuple[int, str] | None = None  # that is open: its number, and how it looks
        place = 0
        while place < len(items):
            item = items[place]
            look = looks[ALIKE.sub("", item.format)] if item.kind == "text" else most
            if pair and (look != pair[1] or item.kind != "text"):
                self._note(f"</g{pair[0]}>")
                pair = None
            if item.kind == "text":
                if look != most and not pair:
                    pair = self._number(look), look
                    self._note(f"<g{pair[0]}>")
                self.tokens += tokens_of(item.text)
            elif item.kind == "open":
                end, number = closing_of(items, place), self._number(item)
                self._closing[number] = items[end]
                self._note(f"<g{number}>")
                self._formats[number] = self._read(items[place + 1 : end])
                self._note(f"</g{number}>")
                place = end
            else:
                self._note(f"<x{self._number(item)}/>", " " if item.kind == "split" else "")
            place += 1
        if pair:
            self._note(f"</g{pair[0]}>")
        return most

    def _number(self, what: Item | str) -> int:
        self._signs.append(what)
        return len(self._signs) - 1

    def _note(self, raw: str, text: str = "") -> None:
        self.tokens.append(Token(raw, text, True))

    def xml(self, text: str) -> str | None:
        """Return runs with a text in which signs stand for marks; None if these are not what they were."""
        document, formats, opened = self._document, [self._format], list[int]()
        parts, pending, reached = [document.leaving(self._begin)], "", 0
        seen = collections.Counter[str]()
        for sign in SIGN.finditer(text):
            pending += text[reached : sign.start()]
            reached = sign.end()
            if sign[0] == BREAK:
                pending += BREAK
                continue
            parts.append(document.run(formats[-1], pending))
            pending, number = "", int(sign["number"])
            what = self._signs[number]
            seen[sign[0]] += 1
            if sign["kind"] == "x":
                parts.append(document.mark(what))
            elif not sign["ends"]:
                opened.append(number)
                formats.append(what if isinstance(what, str) else self._formats[number])
                parts.append("" if isinstance(what, str) else document.mark(what))
            elif not opened or opened.pop() != number:
                return None
            else:
                formats.pop()
                parts.append("" if isinstance(what, str) else document.mark(self._closing[number]))
        parts += [document.run(self._format, pending + text[reached:]), document.entering(self._end)]
        marks = collections.Counter(token.raw for token in self.tokens if token.is_mark)
        return "".join(parts) if not opened and seen == marks else None


class DocumentXml:
    """A member of a document, and its stretches of text in the order in which they begin.

    repeated: characters that properties of runs would be, if each part of a stretch had its longest ones. Raises
    InputError if these are more than there is room for.
    """

    def __init__(self, xml: XmlText, name: str, room: int):
        self.xml, self.name, self.repeated, self._room = xml, name, 0, room
        root = next(number for number, event in enumerate(xml.events) if event.kind == "start")
        self.prefix = self._prefix(root)
        self.stretches: list[Stretch] = []
        self.fields = 0  # that are open at the end of a paragraph
        self.divided: list[str] = []  # texts of paragraphs that stay, in which a field divides a container
        self._left: list[Element] = []  # what is deleted, with all that is in it
        self._done: list[tuple[int, int, str]] = []  # of `with_texts`: events, and what stands for them, the last first
        outer = 0
        for number, event in enumerate(xml.events):
            if event.kind != "start" or event.name != "p" or self._prefix(number) != self.prefix:
                continue
            if any(left.first < number < left.last for left in self._left[-1:]):
                continue
            paragraph, before = xml.element(number), self.fields
            is_inside, outer = number < outer, max(outer, paragraph.last)
            self.fields = 0 if is_inside else before
            self._paragraph(paragraph)
            self.fields = before if is_inside else self.fields
        self.stretches.sort(key=lambda stretch: stretch.first)  # one may stand behind a text box of its paragraph

    def _prefix(self, number: int) -> str:
        """Return the prefix of an element: other vocabularies have <p>, <r> and <t> too."""
        return PREFIX.match(self.xml.raw(number, number + 1))[1] or ""  # type: ignore[index]

    def _paragraph(self, paragraph: Element) -> None:
        """Note the stretches of a paragraph, which tabs, new pages and fields divide."""
        stretch: list[Item] = []
        depth = deepest = 0
        for item in [*with_fields(list(self._items(paragraph)), self), Item("split", 0, 0)]:
            depth += (item.kind == "open") - (item.kind == "close")
            deepest = max(deepest, depth)
            if item.kind == "split" and not depth:
                self._end(stretch if deepest <= MOST_DEPTH else [])
                stretch, deepest = [], 0
            else:
                stretch.append(item)

    def _end(self, items: list[Item]) -> None:
        """Note a stretch if it has a letter, without the marks at its ends."""
        others = [number for number, item in enumerate(items) if item.kind != "mark"]
        items = items[others[0] : others[-1] + 1] if others else []
        if any(item.kind == "text" and any(map(str.isalpha, item.text)) for item in items):
            self.repeated += len(items) * max(len(item.format) for item in items)
            if self.repeated > self._room:
                raise InputError(f"{self.name} has runs with very long properties, which each part would repeat.")
            self.stretches.append(Stretch(items, self))

    def _items(self, paragraph: Element) -> Iterator[Item]:
        waiting, closing = [self.xml.children(paragraph)], list[Item]()
        while waiting:
            element = next(waiting[-1], None)
            if element is None:
                waiting.pop()
                if closing:
                    yield closing.pop()
                continue
            name, last = self.xml.events[element.first].name, element.last + 1
            if name == "pPr" or name in DROPPED:
                continue
            if name == "r" and self._prefix(element.first) == self.prefix:
                yield from self._of_run(element)
            elif (content := self._content(element)) is not None:
                yield Item("open", element.first, content.first + 1)
                closing.append(Item("close", content.last, last))
                waiting.append(self.xml.children(content))
            else:
                if name in ("del", "moveFrom"):
                    self._left.append(element)
                yield Item("mark", element.first, last)

    def _content(self, element: Element) -> Element | None:
        """Return what has the runs of a container; None of what is none, or whose text is the value of something."""
        event = self.xml.events[element.first]
        if event.name == "fldSimple":
            instruction = next((value for name, value in event.attributes.items() if name.endswith("instr")), "")
            return element if LINK.match(instruction) else None
        if event.name != "sdt":
            return element if event.name in CONTAINERS else None
        parts = {self.xml.events[each.first].name: each for each in self.xml.children(element)}
        properties = parts.get("sdtPr")
        is_value = properties and BOUND.search(self.xml.raw(properties.first, properties.last + 1))
        return None if is_value else parts.get("sdtContent")

    def _of_run(self, run: Element) -> Iterator[Item]:
        names = {each.first: self.xml.events[each.first].name for each in self.xml.children(run)}
        inside = [each for each in self.xml.children(run) if names[each.first] not in (*DROPPED, "rPr")]
        format = "".join(
            self.xml.raw(each.first, each.last + 1) for each in self.xml.children(run) if names[each.first] == "rPr"
        )
        for number, each in enumerate(inside):
            event, last = self.xml.events[each.first], number == len(inside) - 1
            item = Item("mark", each.first, each.last + 1, "", run, format, number == 0, last)
            if event.name == "t" and not any(self.xml.children(each)):
                yield item._replace(kind="text", text=text_of(self.xml.inside(each)))
            elif event.name in CHARACTERS or (event.name == "br" and not event.attributes):
                yield item._replace(kind="text", text=CHARACTERS.get(event.name, "\n"))
            elif event.name == "fldChar":
                kind = next((value for name, value in event.attributes.items() if name.endswith("fldCharType")), "")
                yield item._replace(kind=kind) if kind in OF_FIELD else item
            elif event.name == "instrText":
                yield item._replace(kind="instruction", text=XML.text(self.xml.inside(each)))
            else:
                yield item._replace(kind="split") if event.name in SPLITTING else item

    def with_texts(self, texts: Sequence[str]) -> bytes | None:
        """Return the member with these texts in place of its stretches; None if none is another one."""
        self._done = []
        for stretch, text in zip(reversed(self.stretches), reversed(texts), strict=True):
            if text == stretch.raw:
                continue
            if (new := stretch.xml(text)) is None:
                log.warning("%s: a text stays as it was, since its marks found no place: %.60s", self.name, stretch.raw)
                continue
            while self._done and self._done[-1][0] < stretch.last:
                self._done.pop()
            self._done.append((stretch.first, stretch.last, new))
        return self._spliced(0, len(self.xml.events)).encode() if self._done else None

    def _spliced(self, first: int, last: int) -> str:
        """Return how events[first:last] are written, with what stands for some of them."""
        parts, reached = list[str](), first
        number = bisect.bisect_right(self._done, -first, key=lambda each: -each[0]) - 1
        while number >= 0 and self._done[number][0] < last:
            begin, end, new = self._done[number]
            parts += [self.xml.raw(reached, begin), new]
            reached, number = end, number - 1
        return "".join([*parts, self.xml.raw(reached, last)])

    def mark(self, item: Item | str) -> str:
        """Return how a mark is written, in a run of its own if it stood in one."""
        if isinstance(item, str):
            return item
        raw = self._spliced(item.first, item.last)
        return self._run(item.format, raw) if item.run else raw

    def leaving(self, item: Item) -> str:
        """Return what ends the run before an item that is not the first in it."""
        return "" if not item.run or item.begins else f"</{self._name('r')}>"

    def entering(self, item: Item) -> str:
        """Return what begins a run for what stands behind an item in its own."""
        return "" if not item.run or item.ends else f"<{self._name('r')}>{item.format}"

    def run(self, format: str, text: str) -> str:
        """Return a run with a text in which BREAK stands for line breaks; "" for none."""
        name, inside = self._name("t"), ""
        for part in ELEMENTS.split(text):
            if part in NAMES:
                inside += f"<{self._name(NAMES[part])}/>"
            elif part:
                inside += f'<{name} xml:space="preserve">{part}</{name}>'
        return self._run(format, inside) if inside else ""

    def _run(self, format: str, inside: str) -> str:
        return f"<{self._name('r')}>{format}{inside}</{self._name('r')}>"

    def _name(self, name: str) -> str:
        return f"{self.prefix}:{name}" if self.prefix else name


def text_of(inside: str) -> str:
    """Return the text of an element: CDATA stands for itself, a comment for nothing, the end of a line for a space."""
    text = XML.text(AS_IT_IS.sub(lambda part: html.escape(part["text"] or "", quote=False), inside))
    return LINE_END.sub(" ", text)


def written(text: str) -> str:
    return html.escape(NO_CHARACTER.sub("", text), quote=False).replace("\n", BREAK)


def tokens_of(text: str) -> Iterator[Token]:
    """Yield the tokens of a text of a run."""
    for part in re.findall("[^&<>\n]+|[&<>\n]", text):
        yield Token(written(part), part)


def outermost(items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items that are in no container among them."""
    depth = 0
    for item in items:
        depth -= item.kind == "close"
        if not depth:
            yield item
        depth += item.kind == "open"


def closing_of(items: Sequence[Item], place: int) -> int:
    """Return where the container that an item opens is closed."""
    depth = 0
    for number in range(place, len(items)):
        depth += (items[number].kind == "open") - (items[number].kind == "close")
        if not depth:
            return number
    raise ValueError("a container is not closed")


def with_fields(items: Sequence[Item], document: DocumentXml) -> list[Item]:
    """Return items with a mark for each field, but a container for a link; what is no whole field divides the text.

    Fields that go on in the next paragraph are counted in `document.fields`. [] if one divides a container: its text is
    then in `document.divided`.
    """
    found, place, depth, is_divided = list[Item](), 0, 0, False
    while place < len(items):
        item = items[place]
        depth += (item.kind == "open") - (item.kind == "close")
        if not document.fields and item.kind != "begin":
            if item.kind not in OF_FIELD:
                found.append(item)
            place += 1
            continue
        end = place
        while end < len(items):
            document.fields += (items[end].kind == "begin") - (items[end].kind == "end")
            end += 1
            if not document.fields:
                break
        new = of_field(items[place:end])
        is_divided = is_divided or not is_balanced(items[place:end]) or (depth > 0 and new[0].kind == "split")
        found += new
        place = end
    text = "".join(item.text for item in items if item.kind == "text")
    if is_divided and any(map(str.isalpha, text)):
        document.divided.append(text)
    return [] if is_divided else found


def is_balanced(items: Sequence[Item]) -> bool:
    """Return whether each container among items is opened and closed."""
    depths = list(itertools.accumulate((item.kind == "open") - (item.kind == "close") for item in items))
    return not depths or (min(depths) >= 0 and depths[-1] == 0)


def of_field(field: Sequence[Item]) -> list[Item]:
    """Return what stands for a field, or a part of one: a mark, the container of a link, or what divides the text."""
    kinds = [item.kind for item in field]
    first, last = field[0], field[-1]
    if (kinds[0], kinds[-1]) != ("begin", "end") or not (first.begins and last.ends):
        return [Item("split", first.first, first.last)]
    separate = kinds.index("separate") if kinds.count("begin") == 1 and "separate" in kinds else 0
    instruction = "".join(item.text for item in field[:separate] if item.kind == "instruction")
    if separate and LINK.match(instruction) and field[separate].ends and last.begins:
        opening = Item("open", first.whole[0], field[separate].whole[1])
        return [opening, *field[separate + 1 : -1], Item("close", *last.whole)]
    return [Item("mark", first.whole[0], last.whole[1])]
