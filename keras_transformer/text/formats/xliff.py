"""XLIFF 1.2 and 2: a translation for each unit that has none; all else stays byte for byte.

translate-toolkit, which the tests read these files with, would write the file anew.
"""

import collections
import functools
import itertools
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from keras_transformer.ground.errors import InputError
from keras_transformer.text.formats.filled_in import has_filled_in
from keras_transformer.text.formats.parts import Field, Part, located, report
from keras_transformer.text.formats.plurals import divided
from keras_transformer.text.formats.xliff_sizes import (
    CODES,
    OF_FIRST,
    TAG,
    Room,
    is_limit,
    limits_of_first,
    limits_of_second,
)
from keras_transformer.text.formats.xml_events import WHITE_SPACE, XML, Element, Event, XmlText
from keras_transformer.text.passages import Passage, Token

log = logging.getLogger("keras_transformer")

BETWEEN = "ignorable"  # what stands between segments of XLIFF 2
UNITS = "trans-unit", "segment", BETWEEN  # of XLIFF 1.2 and 2
WHOLES = "unit", "trans-unit"  # of XLIFF 2 and 1.2
ROOMS = ("file", "group", "unit"), ("trans-unit",)  # of XLIFF 2 and 1.2: what has room for all that is in it
PROTECTED, TRANSLATED = ("protected", "x-its-translate-no"), ("x-its-translate-yes",)  # values of mtype
REVIEW = "needs-review-translation"  # of XLIFF 1.2
NEEDED, COPIES = ("needs-translation",), ("new", "initial")  # states of a target that is none; of one if it is a copy
STATE = re.compile(r"(\sstate\s*=\s*)(\"[^\"]*\"|'[^']*')")
LOCKED = "true", "locked"  # values of an attribute of Phrase and Trados, and of memoQ
UNDETERMINED = "und"  # a language, in BCP 47


class Unit(NamedTuple):
    """A unit. translates: whether it may be translated; state: of its target; elements: source, seg-source, target.

    owner: the number of the event that begins what tells its languages: <file> in XLIFF 1.2, <xliff> in 2. whole: of
    the one that begins it, in XLIFF 2 with all its segments; is_between: it is no text. locked: the numbers of segments
    of XLIFF 1.2 that are not to be changed.
    """

    translates: bool
    state: str
    elements: dict[str, Element]
    owner: int
    whole: int
    is_between: bool
    locked: frozenset[str]


class Edit(NamedTuple):
    """What is written in place of events[first:last]."""

    first: int
    last: int
    parts: Iterable[Part]


def xliff_parts(
    stream: Iterable[bytes],
    name: str,
    fields: Sequence[str],
    states: Sequence[str] = (),
    target_language: str = "",
    everything: bool = False,
) -> Iterator[Part]:
    """Yield the parts of an XLIFF file: a field in each unit that has no target yet and may be translated.

    states: of targets that are translated anew; everything: all targets are. target_language: what the file tells then
    if it tells none. What was left, and why, is logged at the end. Raises InputError, with the line, if it is not XML,
    if it is not XLIFF, or not in the encoding that it tells; and if it tells another target language.
    """
    document = Document(XmlText.read(stream, name), tuple(states), everything)
    root = document.xml.root("xliff", "XLIFF", name)
    is_first_version = root.attributes.get("version", "").startswith("1")
    edits, owners, left = [], set(), collections.Counter[str]()
    rooms = rooms_of(document.events, name, is_first_version)
    for unit in units_of(document.events, is_first_version):
        reason = document.why_left(unit)
        room = rooms.get(unit.whole)
        if not reason:
            edit = document.edit(unit, is_first_version)
            parts = located(edit.parts, f"{name}, unit {document.id_of(unit)}")
            if room:
                parts = room.translated(parts)
            edits.append(edit._replace(parts=parts))
            owners.add(unit.owner)
        elif room:
            room.add(document.present(unit))
        if reason and not unit.is_between:
            left[reason] += 1
    for room in rooms.values():
        room.come()
    count = len(edits)
    for owner in owners:
        edits += document.edits_of_language(owner, is_first_version, target_language, name)
    reached = 0
    for edit in sorted(edits, key=lambda edit: edit.first):
        yield document.raw(reached, edit.first)
        yield from edit.parts
        reached = edit.last
    yield document.raw(reached, len(document.events))
    report(name, ("unit", "units"), count, left)
    translated = [room for room in rooms.values() if room.is_translated]
    unmeasured = collections.Counter((room.kind, measure) for room in translated for measure in room.unmeasured())
    for (kind, measure), number in unmeasured.items():
        rooms_of_kind = f"{number:,} {kind}{'s' * (number != 1)}"
        log.warning("%s: %s with a size in %s, which is not checked", name, rooms_of_kind, measure)


class Document:
    """An XLIFF file. states: of targets that are translated anew; everything: all targets are."""

    def __init__(self, xml: XmlText, states: Sequence[str], everything: bool):
        self.xml, self.events, self.states, self.everything = xml, xml.events, states, everything
        self._may, self.raw = translated_behind(xml.events), xml.raw

    def inside(self, element: Element) -> Iterator[tuple[int, Event]]:
        """Yield what an element contains, with the numbers of the events."""
        for number in range(element.first + 1, element.last):
            yield number, self.events[number]

    def text(self, element: Element) -> str:
        """Return the text of an element as it is written, without white space at its ends."""
        numbers = (number for number, event in self.inside(element) if event.kind == "text")
        return "".join(self.raw(number, number + 1) for number in numbers).strip()

    def is_empty(self, element: Element) -> bool:
        return all(event.kind == "text" for _, event in self.inside(element)) and not self.text(element)

    def segments(self, element: Element | None) -> dict[str, Element]:
        """Return the segments that XLIFF 1.2 marks in a seg-source or target, by their numbers."""
        segments, depth, first = {}, 0, 0
        for number, event in self.inside(element) if element else ():
            if event.kind == "start":
                if not depth and event.name == "mrk" and event.attributes.get("mtype") == "seg":
                    first, depth = number, 1
                elif depth:
                    depth += 1
            elif event.kind == "end" and depth:
                depth -= 1
                if not depth:
                    segments[self.events[first].attributes.get("mid", str(first))] = Element(first, number)
        return segments

    def id_of(self, unit: Unit) -> str:
        return self.events[unit.whole].attributes.get("id", "?")

    def present(self, unit: Unit) -> str:
        """Return how the text of a unit that is not translated is written: its target, else its source."""
        element = unit.elements.get("target", unit.elements.get("source"))
        return self.raw(element.first, element.last + 1) if element else ""

    def why_left(self, unit: Unit) -> str:
        """Return why a unit is not translated; "" if it is."""
        source, target = unit.elements.get("source"), unit.elements.get("target")
        segments = self.segments(unit.elements.get("seg-source")).keys()
        if not unit.translates or (segments and segments <= unit.locked):
            return "not to be translated"
        if source is None or not self.text(source):
            return "without text"
        is_asked = self.everything or unit.state in (*self.states, *NEEDED)
        if target is None or is_asked or self.is_empty(target):
            return ""
        if unit.state in COPIES and self.text(source) == self.text(target):
            return ""
        if any(self.is_empty(target_segment) for _, target_segment in self.pairs_of_segments(unit)):
            return ""
        return "with a target" + (f" in state {unit.state}" if unit.state else "")

    def pairs_of_segments(self, unit: Unit) -> list[tuple[Element, Element]]:
        """Return the segments of a source with those of its target, unless they are locked."""
        sources = self.segments(unit.elements.get("seg-source"))
        sources = {number: segment for number, segment in sources.items() if number not in unit.locked}
        targets = self.segments(unit.elements.get("target"))
        return [(sources[number], target) for number, target in targets.items() if number in sources]

    def edit(self, unit: Unit, is_first_version: bool) -> Edit:
        """Return how a unit gets its translation."""
        source, target = unit.elements["source"], unit.elements.get("target")
        template = unit.elements.get("seg-source", source)
        if not self.segments(template):
            template = source
        if target is None:
            after = unit.elements.get("seg-source", source).last + 1
            prefix = re.findall(r"<([\w.-]*:)?", self.raw(source.first, source.first + 1))[0]
            state = f' state="{REVIEW}" state-qualifier="mt-suggestion"' if is_first_version else ""
            opening = f"{self.indent_of(source)}<{prefix}target{state}>"
            return Edit(
                after, after, itertools.chain([opening], self.filled(template, unit.locked), [f"</{prefix}target>"])
            )
        opening = (
            STATE.sub(rf'\1"{REVIEW}"', self.xml.opening(target)) if is_first_version else self.xml.opening(target)
        )
        if self.pairs_of_segments(unit):
            filled = self.filled_segments(unit, target)
        else:
            filled = self.filled(template, unit.locked)
        return Edit(target.first, target.last + 1, itertools.chain([opening], filled, [self.xml.closing(target)]))

    def filled_segments(self, unit: Unit, target: Element) -> Iterator[Part]:
        """Yield what a target contains, with fields in the segments that are empty; in all if none is."""
        pairs, reached = self.pairs_of_segments(unit), target.first + 1
        is_anew = not any(self.is_empty(segment) for _, segment in pairs)
        for source, segment in pairs:
            if is_anew or self.is_empty(segment):
                yield self.raw(reached, segment.first) + self.xml.opening(segment)
                yield from self.fields(source)
                yield self.xml.closing(segment)
                reached = segment.last + 1
        yield self.raw(reached, target.last)

    def filled(self, template: Element, locked: frozenset[str]) -> Iterator[Part]:
        """Yield what a source or seg-source contains, with a field for its text, or for that of each segment."""
        segments, reached = self.segments(template), template.first + 1
        if not segments:
            yield from self.fields(template)
            return
        for number, segment in segments.items():
            if number not in locked:  # whose source is its translation
                yield self.raw(reached, segment.first + 1)
                yield from self.fields(segment)
                reached = segment.last
        yield self.raw(reached, template.last)

    def fields(self, element: Element) -> Iterator[Part]:
        """Yield a field for the text of an element; several if something inside is to translate in what is not."""
        tokens: list[Token] = []
        for piece in self.pieces(element):
            if isinstance(piece, Token):
                tokens.append(piece)
            else:
                yield from fields_of(tokens)
                yield piece
                tokens = []
        yield from fields_of(tokens)

    def pieces(self, element: Element) -> Iterator[Token | str]:
        """Yield the tokens of an element: elements in it are marks, with their content if that is not to translate.

        A str stands between two fields.
        """
        in_cdata, code, is_cut, written = False, "", False, ""
        depths = [0]  # of elements in `code`, where it begins, and so far
        for number, event in self.inside(element):
            could, may, text = self._may[number - 1], self._may[number], self._whole(number)
            if written and event.kind != "text":
                yield from XML.tokens_of_lines(written, WHITE_SPACE)
                written = ""
            if not could and may and event.kind == "start":  # translate="yes" in what is not to translate
                yield code + text
                code = ""
            elif could and not may:
                code, is_cut, depths = text, event.kind == "end", [0, event.kind == "start"]
            elif not could:
                code += text
                depths.append(depths[-1] + (event.kind == "start") - (event.kind == "end"))
                if may:
                    is_whole = min(depths) == depths[-1] == 0
                    yield Token(code, "", True) if is_whole and not is_cut else code
                    code = ""
            elif event.kind == "cdata":
                in_cdata = not in_cdata
            elif event.kind == "text":  # of which expat has one for each line
                written += XML.written(text) if in_cdata else text  # the target has no CDATA
            elif text:
                yield Token(text, "", True)
        yield from XML.tokens_of_lines(written, WHITE_SPACE)
        if code:  # a region that ends in a later segment
            yield code

    def _whole(self, number: int) -> str:
        """Return how an event is written: an element without content, <x></x> or <x/>, by its start alone."""
        if self.events[number].kind == "end" and self.events[number - 1].kind == "start":
            return ""
        is_empty = self.events[number].kind == "start" and self.events[number + 1].kind == "end"
        return self.raw(number, number + 1 + is_empty)

    def indent_of(self, source: Element) -> str:
        """Return the white space before a source."""
        first = source.first
        while self.events[first - 1].kind == "text" and not self.raw(first - 1, first).strip():
            first -= 1
        return self.raw(first, source.first)

    def edits_of_language(self, number: int, is_first_version: bool, language: str, name: str) -> Iterator[Edit]:
        """Yield how an element tells the target language, if it does not.

        XLIFF 2 has no target without one. Raises InputError if it tells another than `language`.
        """
        source, target = ("source-language", "target-language") if is_first_version else ("srcLang", "trgLang")
        told, raw = self.events[number].attributes.get(target), self.raw(number, number + 1)
        if told and language and told.lower() != language.lower():
            raise InputError(
                f"{name} tells {target}={told!r}, and --target-language is {language}: give that of the file."
            )
        if told or not (language or not is_first_version):
            return
        if not language:
            log.warning('%s tells no trgLang: "%s" is written; tell it with --target-language', name, UNDETERMINED)
        raw = re.sub(rf"\s{target}\s*=\s*(?:\"\"|'')", "", raw)
        end = re.search(rf"\s{source}\s*=\s*(?:\"[^\"]*\"|'[^']*')", raw) or re.match(r"<[^\s/>]+", raw)
        place = end.end() if end else 0
        yield Edit(number, number + 1, [f'{raw[:place]} {target}="{language or UNDETERMINED}"{raw[place:]}'])


def fields_of(tokens: list[Token]) -> Iterator[Part]:
    """Yield the field of a text; one for each form of a text of Symfony that has several, without elements."""
    raw = "".join(token.raw for token in tokens)
    is_plain = not any(token.is_mark and token.raw.strip() for token in tokens)
    for form in divided(raw) if is_plain else [raw]:
        passage = Passage(tokens if form == raw else XML.tokens_of_lines(form, WHITE_SPACE), XML.written)
        yield form if form == "|" else Field(passage, functools.partial(checked, passage))


def checked(passage: Passage, translation: str) -> str:
    """Return a translation as it is written; it is logged if it lacks what a program fills in."""
    before, after = (XML.text(TAG.sub("", written)) for written in (passage.raw, translation))
    if not has_filled_in(before, after):
        log.warning("%s: the translation %r has not what a program fills in, as %r has", passage.where, after, before)
    return translation


def units_of(events: Sequence[Event], is_first_version: bool) -> Iterator[Unit]:
    """Yield the units of a file, and what stands between the segments of XLIFF 2."""
    stack: list[tuple[Event, int, bool]] = []  # an element, its number, and whether it may be translated
    elements: dict[str, Element] = {}
    locked: set[str] = set()
    owner, whole, state = 0, 0, ""
    for number, event in enumerate(events):
        if event.kind == "start":
            stack.append((event, number, translates(event, not stack or stack[-1][2])))
            if event.name == ("file" if is_first_version else "xliff"):
                owner = number
            if event.name == WHOLES[is_first_version]:
                whole = number
            if event.name in UNITS:
                elements, locked, state = {}, set(), event.attributes.get("state", "")
            if event.name == "seg" and is_locked(event):  # of Trados, which tells so behind the target
                locked.add(event.attributes.get("id", ""))
            if event.name == "target" and len(stack) > 1 and stack[-2][0].name in UNITS:
                state = event.attributes.get("state", state)
        elif event.kind == "end":
            element, first, may = stack.pop()
            is_between = element.name == BETWEEN
            if element.name in UNITS:
                yield Unit(may and not is_between, state, elements, owner, whole, is_between, frozenset(locked))
            elif stack and stack[-1][0].name in UNITS and element.name in ("source", "seg-source", "target"):
                elements[element.name] = Element(first, number)


def rooms_of(events: Sequence[Event], name: str, is_first_version: bool) -> dict[int, Room]:
    """Return the rooms of units, and in XLIFF 2 of groups and files, by the events that begin them.

    There are none in a file that limits nothing.
    """
    rooms: dict[int, Room] = {}
    if not any(is_limit(attribute) for event in events for attribute in event.attributes):
        return rooms
    sizes: list[dict[str, str]] = [{}]  # of units in each element of XLIFF 1.2
    inside: list[Room | None] = [None]
    profiles: dict[str, str] = {}
    for number, event in enumerate(events):
        if event.kind == "start":
            sizes.append({**sizes[-1], **{key: event.attributes[key] for key in OF_FIRST if key in event.attributes}})
            room = inside[-1]
            if event.name == "file":
                profiles = {}
            elif event.name == "profiles":
                profiles.update(event.attributes)  # those of the file, which its rooms have
            if event.name in ROOMS[is_first_version]:
                if is_first_version:
                    limits = functools.partial(limits_of_first, sizes[-1])
                else:
                    limits = functools.partial(limits_of_second, event.attributes, profiles)
                kind = event.name.removeprefix("trans-")
                room = Room(f"{name}, {kind} {event.attributes.get('id', '?')}", kind, limits, room)
                rooms[number] = room
            elif event.name == "mrk" and room and any(map(is_limit, event.attributes)):
                limits = functools.partial(limits_of_second, event.attributes, profiles)
                room.marks[event.attributes.get("id", "")] = limits
            inside.append(room)
        elif event.kind == "end":
            sizes.pop()
            inside.pop()
    return rooms


def translated_behind(events: Sequence[Event]) -> list[bool]:
    """Return of each event whether text behind it may be translated, as far as the text of its unit tells.

    What the innermost element tells counts, or region from <sm/> to <em/>, which may cross elements and segments.
    """
    told: dict[int, bool] = {}  # what elements and regions tell that are open, by the events that begin them
    last: list[int] = []  # the keys of `told` in their order, and some that are closed
    regions: dict[str, int] = {}  # the events that begin them, by id
    opened, inside, behind = [], 0, []
    for number, event in enumerate(events):
        inside += (event.kind == "start") - (event.kind == "end") if event.name in ("source", "seg-source") else 0
        if event.kind == "start":
            opened.append(number)
            value = told_by(event)
            if inside and value is not None:
                told[number] = value
                last.append(number)
        elif event.kind == "end":
            first = opened.pop()
            attributes = events[first].attributes
            if inside and event.name == "sm":
                regions[attributes.get("id", "")] = first
            else:
                told.pop(first, None)
            if inside and event.name == "em":
                told.pop(regions.pop(attributes.get("startRef", ""), first), None)
            if event.name in WHOLES:
                told, last, regions = {}, [], {}
        while last and last[-1] not in told:
            last.pop()
        behind.append(not last or told[last[-1]])
    return behind


def translates(event: Event, of_parent: bool) -> bool:
    """Return whether the text of an element is translated; of_parent: whether that of the one around it is."""
    value = told_by(event)
    return of_parent if value is None else value


def told_by(event: Event) -> bool | None:
    """Return whether an element tells that its text is translated, or that it is not; None: neither."""
    value, kind = event.attributes.get("translate"), event.attributes.get("mtype")
    if event.name in CODES or (event.name in UNITS and is_locked(event)):
        return False
    if value in ("yes", "no"):
        return value == "yes"
    return True if kind in TRANSLATED else False if kind in PROTECTED else None


def is_locked(event: Event) -> bool:
    """Return whether a program for translators has locked a unit, or a segment of one."""
    return any(name.rpartition(":")[2] == "locked" and value in LOCKED for name, value in event.attributes.items())
