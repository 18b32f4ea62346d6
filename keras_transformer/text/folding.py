"""One form for texts that say the same: spaces, hyphens, apostrophes and accents as they are written most often."""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from keras_transformer.pieces.normalization import INVISIBLE, SPACES, members
from keras_transformer.text.words import MARKS

HYPHENS, APOSTROPHES = "\u2010\u2011", "\u2018\u2019\u02bc"
JAMO, SYLLABLE = ("[\u1100-\u1112]", "[\u1161-\u1175]", "[\u11a8-\u11c2]"), "[\uac00-\ud7a3]"  # Hangul
COMPATIBLE = (
    "".join(  # characters that NFC writes as others: Ohm, Kelvin, \u00e5ngstrom, Han of other standards
        character
        for first, last in ((0x340, 0x388), (0x958, 0xFBF), (0x1F71, 0x1FFE), (0x2000, 0x2ADD), (0xF900, 0xFB4F))
        for character in map(chr, range(first, last))
        if not unicodedata.is_normalized("NFC", character)
    )
    + "\U0001d15e-\U0001d164\U0001d1bb-\U0001d1c0\U0002f800-\U0002fa1d"
)
MOST_MARKS = 30  # of a letter: to sort n of them takes n^2
OTHER_FORM = re.compile(
    rf"[{INVISIBLE}]|[{SPACES}]{{2,}}+|(?! )[{SPACES}]|[{HYPHENS}]|[{APOSTROPHES}]"
    rf"|[^{SPACES}{INVISIBLE}{MARKS}][{MARKS}]{{1,{MOST_MARKS}}}+"
    rf"|{JAMO[0]}{JAMO[1]}{JAMO[2]}?|{SYLLABLE}{JAMO[2]}|[{COMPATIBLE}]"
)


FORMS = {  # by the first character
    **dict.fromkeys(members(INVISIBLE), ""),
    **dict.fromkeys(members(SPACES), " "),
    **dict.fromkeys(HYPHENS, "-"),
    **dict.fromkeys(APOSTROPHES, "'"),
}

FORMS_IN_GRAPH = {f"[{INVISIBLE}]": "", f"[{SPACES}]+": " ", f"[{HYPHENS}]": "-", f"[{APOSTROPHES}]": "'"}  # for RE2


class Folded(NamedTuple):
    """A text in one form, and where each of its characters begins and ends in what was written; None: at its place."""

    text: str
    starts: Sequence[int] | None = None
    ends: Sequence[int] | None = None

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Return where text[start:end], of a character or more, begins and ends in what was written."""
        return (start, end) if self.starts is None or self.ends is None else (self.starts[start], self.ends[end - 1])


def folded(text: str) -> Folded:
    """Return a text in one form: NFC, one space for SPACES, - and ' for the like, without what is INVISIBLE.

    export/graph/forbidden.py does the same.
    """
    found = list(OTHER_FORM.finditer(text))
    if not found:
        return Folded(text)
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    reached = 0
    for match in found:
        start, end = match.span()
        written = form_of(match[0])
        parts += [text[reached:start], written]
        starts += [*range(reached, start), *[start] * len(written)]
        ends += [*range(reached + 1, start + 1), *[end] * len(written)]
        reached = end
    starts += range(reached, len(text))
    ends += range(reached + 1, len(text) + 1)
    return Folded("".join([*parts, text[reached:]]), starts, ends)


def form_of(written: str) -> str:
    """Return the one form of what OTHER_FORM finds."""
    form = FORMS.get(written[0])
    return unicodedata.normalize("NFC", written) if form is None else form
