"""What stands inside a sentence of a file, such as <b>, as signs in its text, which `protect` puts around the words.

A sign is as a tag between two characters of Unicode's private use, `(b 0)` and `(/b 1)` say: a text may hold "<b>" as
text, but hardly these. The number is that of the mark in its sentence.
"""

import re
from collections.abc import Sequence

from keras_transformer.text.spans import LEFT, MARK, PATTERNS, RIGHT, TAGS, Span
from keras_transformer.text.tags import VOID, name_of, partners

HALVES = re.compile(  # of a pair in XLIFF 1.2 and 2, each an element of its own
    r"<(?:[\w.-]+:)?(?:(?P<opens>bpt|bx|sc)|ept|ex|ec)\b(?P<attributes>[^>]*)", re.DOTALL
)
KEYS = ("startRef", "rid", "id")  # attributes of HALVES that are the same in both


def signs_of(raws: Sequence[str]) -> list[str]:
    """Return a sign for each mark of a sentence, as they are written, in order."""
    return [f"{LEFT}{content_of(raw.strip(), number)}{RIGHT}" for number, raw in enumerate(raws)]


def content_of(raw: str, number: int) -> str:
    """Return a mark as a tag without brackets: one that opens or closes, or one that stands alone, with "/" behind."""
    if half := HALVES.match(raw):
        attributes = dict(re.findall(r"([\w:]+)\s*=\s*[\"']([^\"']*)", half["attributes"]))
        key = next((attributes[name] for name in KEYS if name in attributes), "")
        return f"{'' if half['opens'] else '/'}half-{re.sub(r'[^A-Za-z0-9]', '_', key)} {number}"
    name = name_of(raw)
    if not name or not PATTERNS[TAGS].fullmatch(raw) or raw.endswith("/>") or name in VOID:
        return f"alone {number}/"
    return f"{'/' if raw.startswith('</') else ''}element-{name} {number}"


def paired(raws: Sequence[str]) -> dict[int, int]:
    """Return the number of the mark that closes each mark that is closed."""
    return partners([Span(0, 0, TAGS, sign) for sign in signs_of(raws)])


def with_signs(text: str, marks: Sequence[tuple[int, str]]) -> str:
    """Return a text with signs for marks, each with its place and as it is written; white space gets none.

    A text that has our signs already is returned as it is.
    """
    if MARK.search(text):
        return text
    parts, reached = [], 0
    for (place, raw), sign in zip(marks, signs_of([raw for _, raw in marks]), strict=True):
        if raw.strip():
            parts += [text[reached:place], sign]
            reached = place
    return "".join([*parts, text[reached:]])


def taken_apart(text: str) -> tuple[str, dict[int, int]]:
    """Return a text without signs and white space at its ends, and the place of each sign, by the number of its mark.

    Places are in order, from left to right.
    """
    places, parts, reached, length = {}, [], 0, 0
    for found in MARK.finditer(text):
        parts.append(text[reached : found.start()])
        length, reached = length + len(parts[-1]), found.end()
        places[int(found[1])] = length
    bare = "".join([*parts, text[reached:]])
    before, stripped = len(bare) - len(bare.lstrip()), bare.strip()
    return stripped, {number: min(max(place - before, 0), len(stripped)) for number, place in places.items()}
