"""Which characters are the same to a tokenizer: spaces, invisible characters, and forms of one letter.

A tokenizer that is trained gets these rules into its SentencePiece model, so that Python, a graph and CTranslate2
normalise alike. What is blank is a property of the text, whatever the tokenizer.
"""

import contextlib
import functools
import itertools
import re
import tempfile
import unicodedata
from collections.abc import Iterator
from typing import Literal

from keras_transformer.pieces.batching import SURROGATE

NFC, NFKC, IDENTITY = NORMALIZATIONS = ("nfc", "nfkc", "identity")
UNICODE: dict[str, Literal["NFC", "NFKC"]] = {NFC: "NFC", NFKC: "NFKC"}  # as unicodedata names the forms
SPACE = "\u2581"  # as SentencePiece writes a space in a piece

# Ranges of characters, as in a regular expression. Unicode's categories Zs, Zl, Zp, Cc, Cf and its property
# Default_Ignorable_Code_Point, without what is visible (U+0600) or was never assigned.
SPACES = (
    "\t-\r\x1c-\x1f \x85\xa0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
    f"\u2800\u3164\uffa0{SPACE}"  # a Braille cell without dots, and fillers of Hangul: they look like spaces
)
INVISIBLE = (  # controls, soft hyphens, signs of direction, zero-width spaces, byte order marks
    "\x01-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u17b4\u17b5\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001"
)
JOINERS = "\u200c\u200d"  # zero-width: non-joiner and joiner, which Persian, Indic scripts and emoji need
STYLES = "\ufe0e\ufe0f"  # selectors of the variant of a character that is black and white, or an emoji
VARIANTS = "\u180b-\u180d\u180f\ufe00-\ufe0d"  # of the variant of a Mongolian or Chinese letter, or of a sign
SELECTORS = f"{VARIANTS}{STYLES}\U000e0020-\U000e007f\U000e0100-\U000e01ef"  # also tags of flags, rare Chinese variants
LETTERLESS = r"(?s)\PL*"  # for RE2: what `has_letter` denies
BLANK = f"[\0\u115f\u1160{SPACES}{INVISIBLE}{JOINERS}{SELECTORS}]*"  # for re and for RE2
_BLANK = re.compile(BLANK)

MARKS = "\u0300-\u036f"  # above and below Latin, Greek and Cyrillic letters
ARABIC_LETTERS = "\u0622-\u0626\u06c0\u06c2\u06d3"  # with a hamza or madda, which NFD takes off
ARABIC_VOWELS = "\u064b-\u0652\u0670"


def is_blank(text: str) -> bool:
    """Whether a text has nothing to translate: only spaces, controls and invisible characters, or nothing."""
    return _BLANK.fullmatch(text) is not None


def has_letter(text: str) -> bool:
    """Whether a text has a letter of any script; digits, signs and emoji are none, but halves of a character are."""
    return any(map(str.isalpha, text)) or SURROGATE.search(text) is not None


def lower_case(text: str) -> str:
    """The text with each character in lower case by itself. `str.lower` writes another sigma at the end of a word."""
    return "".join(map(str.lower, text))


@functools.cache
def normalization_rules(normalization: str, lowercase: bool) -> dict[str, str]:
    """What a tokenizer reads in place of which characters; of several rules that match at a place, the longest holds.

    normalization: "nfc": SPACES are a space, INVISIBLE characters vanish, and characters that Unicode calls canonically
    equivalent are the composed one, as in its form NFC. "nfkc": as its form NFKC, also those that it calls compatible,
    such as full-width letters. "identity": no rule.
    lowercase: each character is also made lower case.

    Raises ValueError for another name.
    """
    if normalization not in NORMALIZATIONS:
        raise ValueError(f"normalization must be one of {', '.join(NORMALIZATIONS)}. Received: {normalization!r}")
    rules = {} if normalization == IDENTITY else _rules_of_form(UNICODE[normalization])
    if lowercase:
        capitals = {capital: lower for capital in _characters() if (lower := lower_case(capital)) != capital}
        for capital, lower in capitals.items():  # "H" and a line below it: only the small letter has one character
            rules |= {capital + rest: rules[lower + rest] for rest in members(MARKS) if lower + rest in rules}
        rules = capitals | {sequence: lower_case(other) for sequence, other in rules.items()}
    return {sequence: other for sequence, other in rules.items() if sequence != other}


def _rules_of_form(form: Literal["NFC", "NFKC"]) -> dict[str, str]:
    """The rules of a normalisation form of Unicode, and those of spaces and invisible characters."""
    rules = {}
    for character in _characters():
        if not unicodedata.is_normalized(form, character):
            rules[character] = unicodedata.normalize(form, character)
        rules |= dict.fromkeys(_sequences(character), unicodedata.normalize(form, character))
    for letter, vowel in itertools.product(members(ARABIC_LETTERS), members(ARABIC_VOWELS)):
        rules[unicodedata.normalize("NFD", letter + vowel)] = letter + vowel  # the vowel comes before the hamza
    if form == "NFKC":  # half-width letters of Japanese, whose voice is marked by a character of its own
        halves = ("".join(pair) for pair in itertools.product(members("\uff66-\uff9d"), "\uff9e\uff9f"))
        rules |= {half: full for half in halves if len(full := unicodedata.normalize(form, half)) == 1}
    rules |= dict.fromkeys(members(SPACES), " ") | dict.fromkeys(members(INVISIBLE), "") | {"\u2011": "-"}
    for invisible, letter in itertools.product((*JOINERS, *STYLES, *members(VARIANTS)), _letters_without_joiners()):
        rules[invisible + letter] = rules.get(letter, letter)
    return {sequence: other for sequence, other in rules.items() if sequence != other}


def _characters() -> Iterator[str]:
    """The characters of which some have a lower case or another form: none beyond the planes 0 to 2 has."""
    return map(chr, itertools.chain(range(1, 0xD800), range(0xE000, 0x30000)))


def _sequences(character: str) -> Iterator[str]:
    """The sequences of characters that NFC makes one character of: letters and marks, and the letters of Hangul."""
    if unicodedata.is_normalized("NFD", character) or not unicodedata.is_normalized("NFC", character):
        return
    parts = unicodedata.normalize("NFD", character)
    base, marks = parts[0], parts[1:]
    for order in itertools.permutations(marks):
        for end in range(1, len(parts)):  # the first of the marks may already be part of the letter
            first = unicodedata.normalize("NFC", base + "".join(order[: end - 1]))
            sequence = first + "".join(order[end - 1 :])
            if unicodedata.normalize("NFC", sequence) == character:
                yield sequence


def _letters_without_joiners() -> Iterator[str]:
    """Letters and digits before which joiners and selectors mean nothing: those of Latin, Greek and Cyrillic script."""
    yield from "0123456789"
    for letter in map(chr, range(ord("A"), 0x2000)):
        if letter.isalpha() and unicodedata.name(letter, "").startswith(("LATIN", "GREEK", "CYRILLIC")):
            yield letter


def members(ranges: str) -> Iterator[str]:
    """The characters of `ranges`, such as those of "0-9x"."""
    return (c for first, last in re.findall("(.)(?:-(.))?", ranges, re.DOTALL) for c in _from(first, last or first))


def _from(first: str, last: str) -> Iterator[str]:
    return map(chr, range(ord(first), ord(last) + 1))


@contextlib.contextmanager
def file_of_rules(rules: dict[str, str]) -> Iterator[str]:
    """The path of a temporary file of the rules, "41\\t61" in hexadecimal for A: SentencePiece reads them only so."""
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        for sides in sorted(rules.items()):
            file.write("\t".join(" ".join(f"{ord(character):X}" for character in side) for side in sides) + "\n")
        file.flush()
        yield file.name
