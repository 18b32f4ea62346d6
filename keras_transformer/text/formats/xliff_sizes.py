"""How long a translation may be in XLIFF: `maxwidth` and `maxbytes` of 1.2, size and storage restrictions of 2."""

import collections
import functools
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from keras_transformer.text.formats.parts import Field, Part, unescaped

log = logging.getLogger("keras_transformer")

CODES = frozenset("ph bpt ept it".split())  # whose content is code of another format
TAG = re.compile(r"<(/?)(?:[\w.-]++:)?+([\w.-]*+)[^<>]*+>")
REFERENCE = re.compile(r"&[^;&]*+;")
OF_FIRST = "maxwidth", "maxbytes", "size-unit"  # attributes, which units of 1.2 have from the groups around them
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
    """The most that a unit has room for. measure: a name of MEASURES, or of what we cannot count."""

    most: int
    measure: str


def limits_of_first(attributes: Mapping[str, str]) -> Iterator[Limit]:
    """Yield the limits of a unit of XLIFF 1.2, by its attributes and those of the groups around it."""
    if "maxwidth" in attributes:
        yield limit(attributes["maxwidth"], attributes.get("size-unit", PIXEL))
    if "maxbytes" in attributes:
        yield limit(attributes["maxbytes"], "byte")


def limits_of_second(attributes: Mapping[str, str], profiles: Mapping[str, str]) -> Iterator[Limit]:
    """Yield the limits of a <unit> of XLIFF 2; profiles: the attributes of the <slr:profiles> of its file."""
    named = {name.rpartition(":")[2]: value for name, value in attributes.items() if ":" in name}
    if "sizeRestriction" in named:
        most = named["sizeRestriction"].rpartition(",")[2].strip()
        if most != "*":
            yield limit(most, profiles.get("generalProfile") or NO_PROFILE)
    if "storageRestriction" in named:
        yield limit(named["storageRestriction"], profiles.get("storageProfile") or NO_PROFILE)


def limit(most: str, measure: str) -> Limit:
    """Return a Limit; one whose number is none cannot be checked."""
    return Limit(int(most), measure) if re.fullmatch(r"[0-9]{1,9}", most.strip()) else Limit(0, most)


def shown(written: str) -> str:
    """Return what is shown of a part of a target: neither tags nor code."""
    parts, reached, depth = [], 0, 0
    for tag in TAG.finditer(written):
        if not depth:
            parts.append(written[reached : tag.start()])
        if tag[2] in CODES and not tag[0].endswith("/>"):
            depth += -1 if tag[1] else 1
        reached = tag.end()
    return REFERENCE.sub(lambda found: unescaped(found[0]), "".join([*parts, written[reached:]]))


class Room:
    """What the translation of a unit may take, and what it takes: it is logged, with the unit, if that is more.

    edits: how many parts of the unit are still to be read.
    """

    def __init__(self, name: str, unit: str, limits: Iterable[Limit]):
        self.name, self.unit = name, unit
        self.limits = [each for each in limits if each.measure in MEASURES]
        self.edits = 0
        self._waiting, self._sizes = 0, collections.Counter[str]()

    def add(self, written: str) -> None:
        text = shown(written)
        self._sizes.update({measure: MEASURES[measure].size(text) for _, measure in self.limits})

    def measured(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Yield the parts of a translation, which are measured when they are laid out."""
        for part in parts:
            if isinstance(part, Field):
                self._waiting += 1
                yield part._replace(laid_out=functools.partial(self._laid_out, part.laid_out))
            else:
                self.add(part)
                yield part
        self.edits -= 1
        self._check()

    def _laid_out(self, laid_out: Callable[[str], str], translation: str) -> str:
        written = laid_out(translation)
        self.add(written)
        self._waiting -= 1
        self._check()
        return written

    def _check(self) -> None:
        if self._waiting or self.edits:
            return
        for most, measure in self.limits:
            if (size := self._sizes[measure]) > most:
                log.warning(
                    "%s, unit %s: its translation has %s %s, and %s are allowed",
                    *(self.name, self.unit, f"{size:,}", MEASURES[measure].name, f"{most:,}"),
                )
