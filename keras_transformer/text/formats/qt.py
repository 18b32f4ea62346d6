"""Qt's .ts: messages without a translation get one, which stays unfinished; all else stays byte for byte.

The format: https://doc.qt.io/qt-6/linguist-ts-file-format.html.
"""

import html
import itertools
import logging
import re
from collections.abc import Iterable, Iterator, Sequence

from keras_transformer.ground.errors import InputError, UserError
from keras_transformer.pieces.languages import short_code
from keras_transformer.text.formats.entries import WORDLESS, Entries, why_left, with_tags_as_marks, without_key_mark
from keras_transformer.text.formats.filled_in import has_filled_in
from keras_transformer.text.formats.parts import Field, Notation, Part, located, unescaped
from keras_transformer.text.formats.plurals import forms_of_qt
from keras_transformer.text.formats.xml_events import Element, XmlText
from keras_transformer.text.passages import Passage, Token
from keras_transformer.text.syntaxes import SYNTAXES

log = logging.getLogger("keras_transformer")

UNFINISHED, FINISHED = STATES = "unfinished", "finished"
GONE = "vanished", "obsolete"  # types of translations whose text the program has no more
PLACEHOLDER = re.compile(next(pattern for name, pattern in SYNTAXES.items() if name.startswith("Qt")))


def written(text: str) -> str:
    return html.escape(text).replace("&#x27;", "&apos;").replace("\xa0", "&#xa0;")


NOTATION = Notation(re.compile(r"&[^&;]*;"), unescaped, written)


def ts_parts(
    stream: Iterable[bytes],
    name: str,
    fields: Sequence[str],
    states: Sequence[str] = (),
    target_language: str = "",
    everything: bool = False,
) -> Iterator[Part]:
    """Yield the parts of a file: a field for each translation that a message lacks, or each form of numbers.

    states: "unfinished" or "finished", of translations that are made anew; everything: both. How many forms there are
    is told by the language of the file, or else target_language. What was left, and why, is logged at the end.
    Raises InputError, with the line, if it is not XML or not of Qt, and if it tells another language.
    """
    if unknown := [state for state in states if state not in STATES]:
        raise UserError(f"--state {unknown[0]} is no state of messages of Qt: give {' or '.join(STATES)}.")
    xml = XmlText.read(stream, name)
    told = xml.root("TS", "file of translations of Qt", name).attributes.get("language", "")
    if told and target_language and short_code(told) != short_code(target_language):
        raise InputError(
            f"{name} tells language={told!r}, and the translation is into {target_language}: correct one of them."
        )
    messages = Messages(xml, name, told or target_language, STATES if everything else states)
    found = [
        xml.element(number)
        for number, event in enumerate(xml.events)
        if (event.kind, event.name) == ("start", "message")
    ]
    for each in found:
        messages.note(each)
    reached = 0
    for each in found:
        yield xml.raw(reached, each.first)
        yield from messages.parts(each)
        reached = each.last + 1
    yield xml.raw(reached, len(xml.events))
    messages.entries.report()


class Messages:
    """The messages of a file. language: of the translations, "" if it is not known; states: of those made anew."""

    def __init__(self, xml: XmlText, name: str, language: str, states: Sequence[str]):
        self.xml, self.name, self.language, self.states = xml, name, language, states
        self.entries = Entries(name, ("message", "messages"))
        self._contexts = {
            number: xml.element(number)
            for number, event in enumerate(xml.events)
            if (event.kind, event.name) == ("start", "context")
        }

    def child(self, message: Element, kind: str) -> Element | None:
        return next((each for each in self.xml.children(message) if self.xml.events[each.first].name == kind), None)

    def text(self, message: Element, kind: str) -> str:
        child = self.child(message, kind)
        return self.xml.inside(child) if child else ""

    def note(self, message: Element) -> None:
        """Log if a message that the program has is there again: lupdate leaves both if it takes one for another."""
        translation = self.child(message, "translation")
        if translation and self.xml.events[translation.first].attributes.get("type") in GONE:
            return
        context = next(
            (self.text(each, "name") for each in reversed(self._contexts.values()) if each.first < message.first), ""
        )
        identity = self.xml.events[message.first].attributes.get("id", "")
        key = self.text(message, "source"), self.text(message, "comment"), context, identity
        if sentence := self.entries.again(self.xml.line(message.first), *key):
            log.warning("%s: both are translated, and Qt reads one of them", sentence)

    def why_left(self, source: Element | None, translation: Element | None) -> str:
        """Return why a message is not translated; "" if it is."""
        if source is None or translation is None:
            return "without <source> or <translation>"
        attributes = self.xml.events[translation.first].attributes
        state = attributes.get("type", FINISHED)
        if state in GONE:
            return state
        if any(self.xml.events[each.first].name == "lengthvariant" for each in self.xml.children(translation)):
            return "with variants"
        raw = self.xml.inside(translation)
        has_text = bool(re.sub(r"<[^>]*>|\s", "", raw)) or (state == FINISHED and raw and "<" not in raw)  # a space
        if has_text and state not in self.states:
            return state
        return why_left(Passage(self.tokens(source)).text)

    def parts(self, message: Element) -> Iterator[Part]:
        """Yield the parts of a message."""
        source, translation = self.child(message, "source"), self.child(message, "translation")
        reason = self.why_left(source, translation)
        if source is None or translation is None or reason:
            self.entries.is_left("", reason or WORDLESS)
            yield self.xml.raw(message.first, message.last + 1)
            return
        self.entries.is_left("a")
        where = f"{self.name}, line {self.xml.line(message.first):,}"
        yield self.xml.raw(message.first, translation.first) + self.opening(translation)
        if self.xml.events[message.first].attributes.get("numerus") == "yes":
            yield from located(self.forms(source, translation, where), where)
        else:
            yield from located([self.field(source, self.xml.inside(translation), where)], where)
        yield self.xml.closing(translation) + self.xml.raw(translation.last + 1, message.last + 1)

    def opening(self, translation: Element) -> str:
        """Return the tag that begins a translation, which is unfinished."""
        opening = self.xml.opening(translation)
        is_told = "type" in self.xml.events[translation.first].attributes
        return opening if is_told else opening.replace("<translation", f'<translation type="{UNFINISHED}"', 1)

    def forms(self, source: Element, translation: Element, where: str) -> Iterator[Part]:
        """Yield the parts of a translation with a form for each kind of numbers."""
        slots = [each for each in self.xml.children(translation) if self.xml.events[each.first].name == "numerusform"]
        count = forms_of_qt(self.language) if self.language else max(len(slots), 1)
        first = self.xml.raw(translation.first + 1, slots[0].first) if slots else ""
        between = self.xml.raw(slots[0].last + 1, slots[1].first) if len(slots) > 1 else first
        for number in range(count):
            yield (between if number else first) + "<numerusform>"
            yield self.field(source, self.xml.inside(slots[number]) if number < len(slots) else "", where)
            yield "</numerusform>"
        yield self.xml.raw(slots[-1].last + 1, translation.last) if slots else ""

    def field(self, source: Element, before: str, where: str) -> Field:
        """Return the field of a source. before: what stands in the file, if the translation lacks what is filled in."""
        raw = self.xml.inside(source)
        plain, finish = without_key_mark(raw, NOTATION)
        is_plain = "<" in raw or plain == raw  # an element, or no mark
        tokens = self.tokens(source) if is_plain else list(NOTATION.tokens(plain))
        passage = Passage(tokens, NOTATION.written)

        def laid_out(translation: str) -> str:
            if has_filled_in(NOTATION.text(passage.raw), NOTATION.text(translation), PLACEHOLDER):
                return translation if is_plain else finish(translation)
            log.warning(
                "%s stays as it was: %r has not what a program fills in, as %r has", where, translation, passage.raw
            )
            return before

        return Field(passage, laid_out)

    def tokens(self, source: Element) -> list[Token]:
        """Return the tokens of a source, in which elements such as <byte/>, and tags in its text, are marks."""
        tokens: list[Token] = []
        events = range(source.first + 1, source.last)
        for is_text, numbers in itertools.groupby(events, lambda number: self.xml.events[number].kind == "text"):
            first, *rest = numbers
            raw = self.xml.raw(first, first + 1 + len(rest))
            tokens += NOTATION.tokens(raw) if is_text else [Token(raw, "", True)]
        return with_tags_as_marks(tokens)
