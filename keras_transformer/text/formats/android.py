"""Resources of Android, strings.xml: each text is translated where it stands, plurals into the forms of the language.

The format: https://developer.android.com/guide/topics/resources/string-resource.
"""

import functools
import html
import logging
import re
from collections.abc import Iterable, Iterator, Sequence

from keras_transformer.ground.errors import InputError
from keras_transformer.text.formats.entries import KEPT, Entries, field_of, with_tags_as_marks
from keras_transformer.text.formats.filled_in import has_filled_in
from keras_transformer.text.formats.parts import CODE_UNITS, Notation, Part, character_of, unescaped
from keras_transformer.text.formats.plurals import ORDER, OTHER, categories_of, text_for
from keras_transformer.text.formats.xml_events import Element, XmlText
from keras_transformer.text.passages import Passage, Token

log = logging.getLogger("keras_transformer")

LISTS, PLURALS = ("string-array", "plurals"), "plurals"
PROTECTED = "g"  # <xliff:g>, around what is filled in
REFERENCE = re.compile(r"[@?](?:[\w.+-]+:)?(?:[\w.+-]+/)?[\w.+-]+")  # to another resource: @string/name
ESCAPE = re.compile(rf"{CODE_UNITS}|\\&[^&;\s]*;|\\[^\n]|&[^&;\s]*;|\"")
WHITE_SPACE = re.compile(r"[ \t\r\n]{2,}|[\t\r\n]")  # is one space, even if it is no line break
QUOTES = '"', "&quot;", "&#34;"  # around white space that is kept: not shown
MEANINGS = {"n": "\n", "t": "\t"}
WRITTEN = {"\\": "\\\\", "'": "\\'", '"': '\\"', "\n": "\\n", "\t": "\\t"}
QUANTITY = re.compile(r"(\squantity\s*=\s*)(\"[^\"]*\"|'[^']*')")


def meaning_of(escape: str) -> str:
    """Return what an escape such as \\n, \\u0020 or &amp; means; "" for a quotation mark, which is not shown."""
    if escape in QUOTES:
        return ""
    if escape[0] == "&":
        return unescaped(escape)
    if escape.startswith("\\u") and len(escape) > 2:
        return character_of(escape)
    sign = unescaped(escape[1:])
    return MEANINGS.get(sign, sign)


def escaped(text: str) -> str:
    """Return a text with escapes; of two spaces beside each other, Android would show one."""
    return "".join(WRITTEN.get(character, character) for character in text).replace("  ", r" \u0020")


def escaped_in_html(text: str) -> str:
    return escaped(html.escape(text, quote=False))


NOTATION = Notation(ESCAPE, meaning_of, escaped_in_html)
CDATA = Notation(re.compile(ESCAPE.pattern.replace(r"|&[^&;\s]*;", "")), meaning_of, escaped)
CDATA_WITH_TAGS = NOTATION  # of HTML


def android_parts(
    stream: Iterable[bytes], name: str, fields: Sequence[str], target_language: str = ""
) -> Iterator[Part]:
    """Yield the parts of resources: a field for each text of a <string>, <string-array> and <plurals>.

    Plurals get the categories of the target language, if it is told and known; else they keep theirs. What was left,
    and why, is logged at the end. Raises InputError, with the line, if it is not XML, no resources, or has one twice.
    """
    resources = Resources(XmlText.read(stream, name), name, categories_of(target_language), target_language)
    xml = resources.xml
    xml.root("resources", "resources of Android", name)
    root = xml.element(next(number for number, event in enumerate(xml.events) if event.kind == "start"))
    for each in xml.children(root):
        resources.note(each)
    reached = 0
    for each in xml.children(root):
        yield xml.raw(reached, each.first)
        yield from resources.parts(each)
        reached = each.last + 1
    yield xml.raw(reached, len(xml.events))
    if resources.has_plurals and not resources.categories:
        log.warning("%s: its plurals keep their forms: tell the language with --target-language", name)
    resources.entries.report()


class Resources:
    """The resources of a file. categories: of numbers in the target language; () if they are not known."""

    def __init__(self, xml: XmlText, name: str, categories: tuple[str, ...], language: str):
        self.xml, self.name, self.categories, self.language = xml, name, categories, language
        self.entries, self.has_plurals = Entries(name), False

    def note(self, element: Element) -> None:
        """Raises InputError if a resource is there again."""
        event = self.xml.events[element.first]
        told = event.attributes
        kind = told.get("type", "item") if event.name == "item" else event.name
        self.entries.note_key(self.xml.line(element.first), kind, told.get("name", ""), told.get("product", ""))

    def parts(self, element: Element) -> Iterator[Part]:
        """Yield the parts of a resource."""
        event = self.xml.events[element.first]
        may = event.attributes.get("translatable", "true").strip().lower() != "false"
        if event.name == "string" or (event.name == "item" and event.attributes.get("type") == "string"):
            yield from self.text(element, may)
        elif event.name == PLURALS and self.categories and may:
            yield from self.plural(element)
        elif event.name in LISTS:
            self.has_plurals = self.has_plurals or event.name == PLURALS
            reached = element.first
            for item in self.xml.children(element):
                yield self.xml.raw(reached, item.first)
                yield from self.text(item, may)
                reached = item.last + 1
            yield self.xml.raw(reached, element.last + 1)
        else:
            yield self.xml.raw(element.first, element.last + 1)

    def text(self, element: Element, may: bool) -> Iterator[Part]:
        """Yield the parts of an element with a text."""
        raw = self.xml.inside(element)
        reason = KEPT if not may else "references" if REFERENCE.fullmatch(raw.strip()) else ""
        shown = Passage([token for tokens, _ in self.sections(element) for token in tokens]).text
        if self.entries.is_left(shown, reason):
            yield self.xml.raw(element.first, element.last + 1)
            return
        yield self.xml.opening(element)
        yield from self.content(element)
        yield self.xml.closing(element)

    def content(self, element: Element) -> Iterator[Part]:
        """Yield the parts of the content of an element."""
        where = f"{self.name}, line {self.xml.line(element.first):,}"
        is_first = True
        for tokens, notation in self.sections(element):
            passage = Passage(tokens, notation.written)
            if passage.text.strip():
                finish = functools.partial(with_first_escaped, passage.raw) if is_first else str
                yield from field_of(passage, notation.text, where, finish)
                is_first = False
            else:
                yield passage.raw

    def plural(self, element: Element) -> Iterator[Part]:
        """Yield the parts of plurals, which get the categories of the target language."""
        items = {
            self.xml.events[item.first].attributes.get("quantity", ""): item for item in self.xml.children(element)
        }
        if items and (OTHER not in items or not set(items) <= set(ORDER)):
            raise InputError(
                f"{self.name}, line {self.xml.line(element.first):,} has plurals of {', '.join(items)}: they need "
                f"other, and may have {', '.join(ORDER)}."
            )
        texts = {category: NOTATION.text(self.xml.inside(item)) for category, item in items.items()}
        if not items or self.entries.is_left(texts[OTHER]):
            yield self.xml.raw(element.first, element.last + 1)
            return
        lacking = [category for category in self.categories if category not in items]
        reached = element.first
        for category, item in items.items():
            between, reached = self.xml.raw(reached, item.first), item.last + 1
            while lacking and (category == OTHER or ORDER.index(lacking[0]) < ORDER.index(category)):
                new = lacking.pop(0)
                yield between
                yield from self.form(new, item, items[text_for(new, texts, self.language, has_filled_in)])
                between = between[len(between.rstrip()) :]
            if category in self.categories:
                yield between
                yield from self.form(category, item, items[text_for(category, texts, self.language, has_filled_in)])
            else:
                yield between.rstrip()
        yield self.xml.raw(reached, element.last + 1)

    def form(self, category: str, item: Element, source: Element) -> Iterator[Part]:
        """Yield an item of plurals for a category, as another is written, with the text of a third."""
        opening = self.xml.opening(item)
        if self.xml.events[item.first].attributes.get("quantity") != category:
            opening = QUANTITY.sub(rf'\1"{category}"', opening)
        yield opening
        yield from self.content(source)
        yield self.xml.closing(item)

    def sections(self, element: Element) -> Iterator[tuple[list[Token], Notation]]:
        """Yield the tokens of an element and their notation: those of each CDATA apart."""
        tokens: list[Token] = []
        in_cdata, number, events = False, element.first + 1, self.xml.events
        while number < element.last:
            event, last = events[number], number
            if event.kind == "start" and (event.name == PROTECTED or events[number + 1].kind == "end"):
                last = self.xml.element(number).last
            while event.kind == "text" and events[last + 1].kind == "text":  # expat has one for each line
                last += 1
            raw = self.xml.raw(number, last + 1)
            if event.kind == "cdata":
                if in_cdata:
                    yield section(tokens, CDATA)
                    tokens = [Token(raw, "", True)]
                else:
                    yield section([*tokens, Token(raw, "", True)], NOTATION)
                    tokens = []
                in_cdata = not in_cdata
            elif event.kind == "text":
                tokens += tokens_of(raw, CDATA if in_cdata else NOTATION)
            else:
                tokens.append(Token(raw, "", True))
            number = last + 1
        yield section(tokens, NOTATION)


def tokens_of(raw: str, notation: Notation) -> Iterator[Token]:
    """Yield the tokens of a text, in which quotation marks that are not shown are marks."""
    for token in notation.tokens_of_lines(raw, WHITE_SPACE):
        yield token if token.text else token._replace(is_mark=True)


def section(tokens: list[Token], notation: Notation) -> tuple[list[Token], Notation]:
    """Return tokens with tags in their text as marks, and their notation: CDATA with tags is HTML."""
    merged = with_tags_as_marks(tokens)
    if notation is CDATA and any(token.is_mark and token.raw.startswith("<") for token in merged):
        raw = "".join(token.raw for token in tokens)
        return with_tags_as_marks(list(tokens_of(raw, CDATA_WITH_TAGS))), CDATA_WITH_TAGS
    return merged, notation


def with_first_escaped(source: str, translation: str) -> str:
    """Return a translation that begins with @ or ? with an escape, unless its source has none."""
    text = translation.lstrip()
    if text[:1] in ("@", "?") and text[:1] != source.lstrip()[:1]:
        return f"{translation[: len(translation) - len(text)]}\\{text}"
    return translation
