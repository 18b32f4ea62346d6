"""Which document is for training, validation or the test, and which text of a test is too near to training."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

SHARES = {"test": 0.05, "validation": 0.03}  # of the documents; the rest is for training
NAMES = ("train", "validation", "test", "pictures")
NO_LETTERS = re.compile(r"[\W\d_]+")
MISSING_PART = re.compile(r"\[text/\S+ not found\]")  # what LibreOffice's help has in its place


class AlignedText(NamedTuple):
    """A pair with the name of its document: a page of help or a catalogue."""

    source: str
    target: str
    document: str


def division_of(document: str) -> str:
    """The split of a document: its name alone decides, so it is the same beside other packages and other languages."""
    place = int.from_bytes(hashlib.sha256(document.encode()).digest()[:8], "big") / 2**64
    for name, share in SHARES.items():
        if place < share:
            return name
        place -= share
    return "train"


def letters_of(text: str) -> str:
    """What near duplicates have in common: the letters of a text, without case, numbers, marks and spaces."""
    return NO_LETTERS.sub("", unicodedata.normalize("NFKC", text).casefold())


def without_repetitions(pairs: Iterable[AlignedText], counts: Counter) -> list[AlignedText]:
    """The pairs that teach something, each once: counts by reason what is left out."""
    seen: set[tuple[str, str]] = set()
    kept = []
    for pair in pairs:
        if not letters_of(pair.source) or not letters_of(pair.target):
            counts["without letters"] += 1
        elif MISSING_PART.search(pair.source) or MISSING_PART.search(pair.target):
            counts["with a part of help that is missing"] += 1
        elif pair.source.casefold() == pair.target.casefold():
            counts["the same in both languages"] += 1
        elif (key := (pair.source, pair.target)) in seen:
            counts["repeated"] += 1
        else:
            seen.add(key)
            kept.append(pair)
    return kept


def without_near(pairs: Sequence[AlignedText], others: Iterable[AlignedText]) -> list[AlignedText]:
    """The pairs neither of whose sides is a side of `others` but for numbers, case and marks."""
    sources, targets = set(), set()
    for other in others:
        sources.add(letters_of(other.source))
        targets.add(letters_of(other.target))
    return [pair for pair in pairs if letters_of(pair.source) not in sources and letters_of(pair.target) not in targets]
