"""What stands inside a sentence of a file, such as <b>, as signs in its text, which `protect` puts around the words.

A sign is as a tag between two characters of Unicode's private use, `(b 0)` and `(/b 1)` say: a text may hold "<b>" as
text, but hardly these. The number is that of the mark in its sentence.
"""

import html
import re
from collections.abc import Iterable, Sequence

from keras_transformer.text.spans import LEFT, MARK, PATTERNS, RIGHT, TAGS, Span
from keras_transformer.text.tags import VOID, name_of, partners

HALVES = re.compile(  # of a pair in XLIFF 1.2 and 2, each an element of its own
    r"<(?:[\w.-]+:)?(?:(?P<opens>bpt|bx|sc|sm|it\b(?=[^>]*\spos\s*=\s*[\"']open))|ept|ex|ec|em\b(?=[^>]*\sstartRef)"
    r"|it\b(?=[^>]*\spos\s*=\s*[\"']close))\b(?P<attributes>[^>]*)",
    re.DOTALL,
)
REGION = re.compile(r"<(?:[\w.-]+:)?sm\b.*<(?:[\w.-]+:)?em\b", re.DOTALL)  # with its text, which is not to translate
KEYS = ("startRef", "rid", "id")  # attributes of HALVES that are the same in both
CODE = re.compile(r"<(?:[\w.-]+:)?(?:x|ph)\b(?P<attributes>[^>]*?)(?:/>|>(?P<content>.*?)</)", re.DOTALL)  # of XLIFF
ATTRIBUTE = re.compile(r"(?<![\w:.-])([\w:.-]++)\s*+=\s*+([\"'])(.*?)\2", re.DOTALL)
SHOWN = "equiv-text", "disp"  # attributes of CODE that have what it stands for
ANGULAR = re.compile(r"(?:(START)|CLOSE)_(\w+?)(?:_\d+)?")  # an id of CODE
BRACES = re.compile(r"\{(?:(?P<closes>/)?(?P<name>[bius])|\\(?P<style>[bius])(?P<is_on>[01]))\}", re.IGNORECASE)
ORDERED = (
    re.compile(  # comments, times in WebVTT and overrides of SubStation Alpha, which hold from there on, and codes
        r"<!--|<\d[\d:.]*>|\{\\|<[^>]*\scanReorder\s*=\s*[\"'](?:no|firstNo)[\"']"  # of XLIFF 2
    )
)


def signs_of(raws: Sequence[str]) -> list[str]:
    """Return a sign for each mark of a sentence, as they are written, in order."""
    return [f"{LEFT}{content_of(raw.strip(), number)}{RIGHT}" for number, raw in enumerate(raws)]


def content_of(raw: str, number: int) -> str:
    """Return a mark as a tag without brackets: one that opens or closes, or one that stands alone, with "/" behind."""
    if not (half := half_of(raw)):
        return f"alone {number}/"
    opens, kind, key = half
    return f"{'' if opens else '/'}{kind}-{re.sub(r'[^A-Za-z0-9]', '_', key)} {number}"


def half_of(raw: str) -> tuple[bool, str, str] | None:
    """Return whether a mark opens a pair, and what is the same in both marks of it; None if it stands alone."""
    if REGION.match(raw):
        return None
    if half := HALVES.match(raw):
        attributes = attributes_of(half["attributes"])
        return half["opens"] is not None, "half", next((attributes[name] for name in KEYS if name in attributes), "")
    if braces := BRACES.fullmatch(raw):
        is_open = braces["is_on"] == "1" if braces["style"] else not braces["closes"]
        return is_open, "braces", (braces["style"] or braces["name"]).lower()
    if code := CODE.match(raw):
        attributes = attributes_of(code["attributes"])
        if angular := ANGULAR.fullmatch(attributes.get("id", "")):
            return angular[1] is not None, "angular", angular[2]
        shown = [attributes[name] for name in SHOWN if name in attributes]
        return half_of_tag(html.unescape(next(iter(shown), code["content"] or "")), "code")
    return half_of_tag(raw, "element")


def half_of_tag(tag: str, kind: str) -> tuple[bool, str, str] | None:
    """Return what `half_of` returns, for a tag of HTML, XML or WebVTT, in which a class may follow: <c.yellow>."""
    name = name_of(tag)
    if not name or not PATTERNS[TAGS].fullmatch(tag) or tag.endswith("/>") or name in VOID:
        return None
    return not tag.startswith("</"), kind, name.partition(".")[0]


def attributes_of(written: str) -> dict[str, str]:
    return {name: value for name, _, value in ATTRIBUTE.findall(written)}


def are_in_order(numbers: Iterable[int], raws: Sequence[str]) -> bool:
    """Return whether the ORDERED marks among some marks, by their numbers from left to right, are as in the source."""
    ordered = [number for number in numbers if ORDERED.match(raws[number])]
    return ordered == sorted(ordered)


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
