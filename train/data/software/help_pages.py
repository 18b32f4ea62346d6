"""Pages of LibreOffice's help: their paragraphs by id, which are the same in all languages."""

import re
from collections import Counter
from html.parser import HTMLParser
from typing import NamedTuple

from ..catalogues import single_spaced

PARAGRAPH = re.compile(r"(?:par|hd)_\w+")
VOID = frozenset("area base br col hr img input link meta source track wbr".split())
SWITCHES = frozenset(("switch", "switchinline"))  # texts for several systems or programs, of which a reader sees one
CODE = frozenset("code codeintable bascode pycode smathcode".split())
NOT_TEXT = frozenset(("script", "style", "code", "pre", "noscript", "title"))


class Element(NamedTuple):
    """An element that is open: the text in it so far, and, in a switch, (is the default, text) of each choice."""

    tag: str
    identity: str
    classes: frozenset[str]
    text: list[str]
    choices: list[tuple[bool, str]]


def paragraphs_of(page: str) -> dict[str, str]:
    """The text of each paragraph and heading with an id, in the order of the page; code has none.

    Of a switch between systems or programs, the text is its default, or its first choice. An id that a page has twice
    is that of its first paragraph.
    """
    reader = Reader()
    reader.feed(page)
    reader.close()
    while reader.open:
        reader.end_innermost()
    return reader.paragraphs


class Reader(HTMLParser):
    """Collects `paragraphs`, by id."""

    def __init__(self) -> None:
        super().__init__()
        self.paragraphs: dict[str, str] = {}
        self.open: list[Element] = []
        self.open_tags: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            self.handle_data(" " if tag == "br" else "")
            return
        if tag in ("p", "li", "td", "th", "tr") and self.open and self.open[-1].tag == tag:
            self.end_innermost()  # their end may be left out
        attributes = {name: value or "" for name, value in attrs}
        classes = frozenset(attributes.get("class", "").split())
        self.open_tags[tag] += 1
        self.open.append(Element(tag, attributes.get("id", ""), classes, [], []))

    def handle_endtag(self, tag: str) -> None:
        if self.open_tags[tag]:
            while self.end_innermost() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self.open:
            self.open[-1].text.append(data)

    def end_innermost(self) -> str:
        """End the innermost element: a paragraph is kept, other text belongs to what is around it. Returns its tag."""
        element = self.open.pop()
        self.open_tags[element.tag] -= 1
        text = "".join(element.text)
        if element.choices:
            text = next((choice for is_default, choice in element.choices if is_default), element.choices[0][1])
        if element.tag in NOT_TEXT:
            return element.tag
        if PARAGRAPH.fullmatch(element.identity):
            if not element.classes & CODE:
                self.paragraphs.setdefault(element.identity, single_spaced(text))
        elif self.open and self.open[-1].classes & SWITCHES:
            self.open[-1].choices.append((element.identity.startswith("default"), text))
        elif self.open:
            self.open[-1].text.append(text)
        return element.tag
