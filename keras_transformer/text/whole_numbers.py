"""What a number in digits is, with its sign, currency, per cent, degrees and unit, for Python and for RE2 in a graph.

    "$50 or -5°C, 1e-5, 1.5GB, 1 000 000, 2026-11-28T12:00"     six numbers
    "4th, B2B, A4, 1.23b"                                        none: a number that goes on as a word is no number

Either is one pattern that walks over a text: its group 1 is a number, and group 2 what goes on behind it, so that it is
one only if group 2 is empty. What it matches without group 1 is to be passed over.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from keras_transformer.pieces.scripts import UNSPACED_CHARACTER

CURRENCIES = "".join(
    character for character in map(chr, range(0x20, 0xFFFF)) if unicodedata.category(character) == "Sc"
)
MINUS, DEGREE, SPACES = "\u2212", "\u00b0\u2032\u2033", " \u00a0\u2009\u202f"  # SPACES: one may be within a number
SIGNS, PER_CENT = f"+{MINUS}\u2013\u00b1-", "%\u2030\uff05"
UNITS = (
    "[KMGTP]i?B|[kKMGT]?bit|[kKMGT]?bps|[kMG]?Hz|[kM]?Wh|[mkMG]?W|m?Ah|[mk]?V|m?A|[km]?cal|[kM]?J|[hk]?Pa|m?bar|"
    "km/h|m/s|mph|[cdkmn\u00b5\u03bc]?m[23]?|[mk\u00b5\u03bc]?g|[mcdh]?l|[mc]?L|[mn\u00b5\u03bc]s|min|"
    "h|dB|px|pt|r?em|dpi|fps|rpm|ppm|lbs?|oz|ft|in|bn|[xkKMB]"
)
# Characters beyond ASCII that numbers of digits 0 to 9 have
BEYOND_ASCII = "".join(
    sorted(
        {*CURRENCIES, *MINUS, *DEGREE, *SPACES, *"\u2013\u00b1\u2030\uff05\u2019\u00b5\u03bc\u00b2\u00b3\u00d7"}
        - set(map(chr, range(128)))
    )
)
OTHER_DIGITS = f"[^\\x00-\\x7F{BEYOND_ASCII}]"  # in a number: of digits that are not 0 to 9


def pattern_of_numbers(word: str, digit: str, boundary: str, no_boundary: str) -> str:
    """Return the pattern for an engine: how it writes a character of a word, a digit, and the edge of an ASCII word."""
    space, sign, currency = f"[{SPACES}]", f"[{SIGNS}]", f"[{CURRENCIES}]"
    grouped = f"{digit}{{1,3}}(?:{space}{digit}{{3}})+{boundary}(?:[.,]{digit}+)?"
    joined = f"\\.?{digit}+(?:[-.,:/'\u2019\u2013x\u00d7]{digit}+|\\^[-{MINUS}]?{digit}+)*"
    clock = f"(?:T{digit}+(?::{digit}+)*(?:[.,]{digit}+)?(?:Z|[-+]{digit}{{2}}:?{digit}{{2}})?)?"
    digits = f"(?:{grouped}|{joined}{clock}(?:[eE][-+{MINUS}]?{digit}+)?)"
    degrees, area = f"[{DEGREE}](?:[CFKNESW]{boundary})?", "[cdkm]?m[\u00b2\u00b3]"
    behind = (
        f"(?:{space}?(?:%%?|[{PER_CENT}]|{degrees})|{currency}|{space}{currency}{no_boundary}|{area}|"
        f"\\+{no_boundary}|(?:{UNITS}){boundary})?"
    )
    before = f"(?:{sign}?[A-Z]{{0,3}}{currency}{sign}?{space}?|{sign}?%?)"
    going_on = f"(?:{word}|[\u0300-\u036f\ufe0f\u20e3])*"
    return (
        f"({before}{digits}{behind}(?:[-\u2013/]{before}{digits}{behind})*)({going_on})"
        f"|(?:</?|\\{{){digit}+|{word}+{digit}(?:[-.,:/]{digit}+)+{word}*|{word}+[-+.]*|\\.\\.+"
    )


NUMBER = re.compile(pattern_of_numbers(r"\w", r"\d", r"(?a:\b)", r"(?a:\B)"))
# What a number may have beside it as a word of its own, with a space between
SIGN_AND_SPACE = re.compile(f"[A-Z]{{0,3}}[{CURRENCIES}][{SPACES}]")
SPACE_AND_SIGN = re.compile(f"[{SPACES}](?:%%?|[{CURRENCIES}{PER_CENT}]|[{DEGREE}][CFKNESW]?)$")
_BRACKETS = {"(": ")", "[": "]"}


class Number(NamedTuple):
    """A number of a text: text[start:end]."""

    start: int
    end: int


def whole_numbers(text: str) -> Iterator[Number]:
    """Yield the numbers of a text from left to right; letters of scripts without spaces may touch them."""
    for found in NUMBER.finditer(UNSPACED_CHARACTER.sub(" ", text)):
        if found[1] and not found[2]:
            yield Number(*found.span(1))


def in_brackets(text: str, number: Number) -> Number:
    """Return a number with the brackets that enclose it alone."""
    start, end = number
    is_enclosed = start > 0 and _BRACKETS.get(text[start - 1]) == text[end : end + 1] != ""
    return Number(start - 1, end + 1) if is_enclosed else number
