"""What a word is: letters, their marks, numbers, and joiners, in every script; for Python, and for RE2 in a graph."""

import re
import unicodedata

from keras_transformer.pieces.scripts import UNSPACED, UNSPACED_CHARACTER


def ranges_of(*categories: str) -> str:
    """Return the characters of categories of Unicode as ranges of a class of `re`."""
    ranges: list[list[int]] = []
    for code in (*range(0x300, 0x1F000), *range(0xE0100, 0xE01F0)):  # there are no others
        if unicodedata.category(chr(code)) in categories:
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


MARKS = ranges_of("Mn", "Mc", "Me")  # \p{M}, which `re` does not know: accents, vowels of Hindi, niqqud
JOINERS = "\u00ad\u200c\u200d\u2060"  # inside of words: a soft hyphen, those of Persian and of Indian scripts
LETTER = re.compile(rf"[\w{MARKS}{JOINERS}]")
ATTACHED = re.compile(f"[{MARKS}{JOINERS}]")  # never the first of a word
LETTER_IN_GRAPH, ATTACHED_IN_GRAPH = rf"[\pL\pN\pM_{JOINERS}]", rf"[\pM{JOINERS}]"  # the same in RE2
# A word, or a letter of a script without spaces with its marks, or another sign: `is_edge` holds at its ends alone
TOKEN = re.compile(
    rf"{LETTER.pattern}(?:{ATTACHED.pattern}|(?<![{UNSPACED}])(?![{UNSPACED}]){LETTER.pattern})*+|.", re.DOTALL
)


def is_edge(text: str, place: int) -> bool:
    """Return whether a word may begin or end at a place of a text.

    In scripts that put no spaces between words it may anywhere, but before what is attached to a letter. export/graph/
    forbidden.py finds the same: `tests/support/text_rules.py` has the cases.
    """
    if not 0 < place < len(text):
        return True
    left, right = text[place - 1], text[place]
    if not (LETTER.match(left) and LETTER.match(right)):
        return True
    return not ATTACHED.match(right) and bool(UNSPACED_CHARACTER.search(left + right))


def is_apart(text: str, start: int, end: int) -> bool:
    """Return whether text[start:end] is whole words, or what it would be if spaces divided its words."""
    return is_edge(text, start) and is_edge(text, end)
