"""How long a translation may be in XLIFF: `maxwidth` and `maxbytes` of 1.2, size and storage restrictions of 2."""

import collections
import functools
import itertools
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from keras_transformer.text.formats.parts import Field, Part, unescaped

log = logging.getLogger("keras_transformer")

CODES = frozenset("ph bpt ept it".split())  # whose content is code of another format
TAG = re.compile(r"<(/?)(?:[\w.-]++:)?+([\w.-]*+)(?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+>")
REFERENCE = re.compile(r"&[^;&]*+;")
OF_FIRST = "maxwidth", "maxbytes", "size-unit"  # attributes, which units of 1.2 have from the groups around them
OF_SECOND = "sizeRestriction", "storageRestriction"  # attributes behind the prefix of their namespace
PIXEL, NO_PROFILE = "pixel", "no profile"  # what the standards take if a file tells nothing


class Measure(NamedTuple):
    """What is counted of a text, and how."""

    name: str
    size: Callable[[str], int]


def bytes_in(encoding: str) -> Callable[[str], int]:
    return lambda text: len(text.encode(encoding, "surrogatepass"))


MEASURES = {  # by size-unit of 1.2, and by profile of 2
    "char": Measure("characters", len),
    "xliff:codepoints": Measure("characters", len),
    "byte": Measure("bytes in UTF-8", bytes_in("utf-8")),
    "xliff:utf8": Measure("bytes in UTF-8", bytes_in("utf-8")),
    "xliff:utf16": Measure("bytes in UTF-16", bytes_in("utf-16-be")),
    "xliff:utf32": Measure("bytes in UTF-32", bytes_in("utf-32-be")),
}


class Limit(NamedTuple):
    """The most that an element has room for. measure: a name of MEASURES, or of what we cannot count."""

    most: int
    measure: str


def limits_of_first(attributes: Mapping[str, str]) -> Iterator[Limit]:
    """Yield the limits of a unit of XLIFF 1.2, by its attributes and those of the groups around it."""
    if "maxwidth" in attributes:
        yield limit(attributes["maxwidth"], attributes.get("size-unit", PIXEL))
    if "maxbytes" in attributes:
        yield limit(attributes["maxbytes"], "byte")


def limits_of_second(attributes: Mapping[str, str], profiles: Mapping[str, str]) -> Iterator[Limit]:
    """Yield the limits of an element of XLIFF 2; profiles: the attributes of the <slr:profiles> of its file."""
    named = {name.rpartition(":")[2]: value for name, value in attributes.items() if ":" in name}
    if "sizeRestriction" in named:
        most = named["sizeRestriction"].rpartition(",")[2].strip()
        if most != "*":
            yield limit(most, profiles.get("generalProfile") or NO_PROFILE)
    if "storageRestriction" in named:
        yield limit(named["storageRestriction"], profiles.get("storageProfile") or NO_PROFILE)


def is_limit(attribute: str) -> bool:
    return attribute in OF_FIRST or attribute.rpartition(":")[2] in OF_SECOND


def limit(most: str, measure: str) -> Limit:
    """Return a Limit; one whose number is none cannot be checked."""
    return Limit(int(most), measure) if re.fullmatch(r"[0-9]{1,9}", most.strip()) else Limit(0, most)


class Room:
    """What the translation of a unit, group or file may take, and what it takes: it is logged if that is more.

    name: of the file and the element. limits: returns its Limits, once the file is read. around: the room that this is
    part of. marks: returns the Limits of a mark in it, by its id.
    """

    def __init__(self, name: str, kind: str, limits: Callable[[], Iterable[Limit]], around: "Room | None"):
        self.name, self.kind, self.limits, self.around = name, kind, limits, around
        self.marks: dict[str, Callable[[], Iterable[Limit]]] = {}
        self.is_translated = False
        self._waiting = 1  # for the file to be read, for what is translated, and for rooms in this one
        self._sizes = collections.Counter[str]()
        if around:
            around._waiting += 1

    def add(self, written: str) -> None:
        self._sizes += self._sizes_of(written, is_translated=False)

    def translated(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Return the parts of a translation, which are measured when they are laid out."""
        room: Room | None = self
        while room and not room.is_translated:
            room.is_translated, room = True, room.around
        self._waiting += 1
        return self._measured(parts)

    def _measured(self, parts: Iterable[Part]) -> Iterator[Part]:
        for part in parts:
            if isinstance(part, Field):
                self._waiting += 1
                yield part._replace(laid_out=functools.partial(self._laid_out, part.laid_out))
            else:
                self._sizes += self._sizes_of(part)
                yield part
        self.come()

    def _laid_out(self, laid_out: Callable[[str], str], translation: str) -> str:
        written = laid_out(translation)
        self._sizes += self._sizes_of(written)
        self.come()
        return written

    def come(self) -> None:
        """Count something that was waited for; with the last, check the room, and count it in the one around it."""
        room: Room | None = self
        while room:
            room._waiting -= 1
            if room._waiting:
                return
            if room.is_translated:
                warn_of(room.name, room.limits(), room._sizes)
            if room.around:
                room.around._sizes += room._sizes
            room = room.around

    def unmeasured(self) -> set[str]:
        """Return what the room, or a mark in it, has a size in that we cannot count."""
        limits = itertools.chain(self.limits(), *(limits() for limits in self.marks.values()))
        return {limit.measure for limit in limits} - MEASURES.keys()

    def _sizes_of(self, written: str, is_translated: bool = True) -> collections.Counter[str]:
        """Return the sizes of a part of a target, without tags and code. One of a mark that is too large is logged."""
        reached, depth = 0, 0
        marks, sizes = [""], [collections.Counter[str]()]  # those that are open; of the part, and of each mark in it
        for tag in TAG.finditer(written):
            if not depth:
                sizes[-1] += sizes_of_text(written[reached : tag.start()])
            reached = tag.end()
            if tag[0].endswith("/>"):
                continue
            if tag[2] in CODES:
                depth += -1 if tag[1] else 1
            elif tag[2] == "mrk" and not tag[1]:
                marks.append(id_of(tag[0]))
                sizes.append(collections.Counter())
            elif tag[2] == "mrk" and len(marks) > 1:
                mark, size = marks.pop(), sizes.pop()
                if is_translated and mark in self.marks:
                    warn_of(f"{self.name}, mrk {mark}", self.marks[mark](), size)
                sizes[-1] += size
        sizes[-1] += sizes_of_text(written[reached:])
        return sum(sizes, collections.Counter())


def id_of(tag: str) -> str:
    found = re.search(r"\sid\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)')", tag)
    return unescaped(found[1] or found[2] or "") if found else ""


def sizes_of_text(written: str) -> collections.Counter[str]:
    text = REFERENCE.sub(lambda found: unescaped(found[0]), written)
    return collections.Counter({name: measure.size(text) for name, measure in MEASURES.items()} if text else {})


def warn_of(what: str, limits: Iterable[Limit], sizes: Mapping[str, int]) -> None:
    """Log each limit that a translation exceeds."""
    for most, measure in limits:
        if measure in MEASURES and (size := sizes[measure]) > most:
            count = f"{size:,} {MEASURES[measure].name}"
            log.warning("%s: its translation has %s, and %s are allowed", what, count, f"{most:,}")
