"""Rules that drop sentence pairs which teach a model little, or wrong things. Needs neither TensorFlow nor train/.

Each rule is a pure function of a source, a target and the value of its setting; RULES is the table of them:

    cleaner = Cleaner({"identical": True, "length_ratio": 3.0})
    cleaner.reason_to_drop("Yes.", "Yes.")      "identical"
    cleaner.reason_to_drop("Yes.", "Ja.")       None
"""

import functools
import hashlib
import importlib.util
import re
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from keras_transformer.ground.errors import ConfigError
from keras_transformer.pieces.scripts import HAN, KANA, UNSPACED_CHARACTER
from keras_transformer.text.detection import identifier

ALWAYS_THERE = 10  # characters that are added to both sides: ratios of short sentences say little
# Letters of English for a character of Han, and for one of kana or Hangul
SAYING_MORE = ((re.compile(f"[{HAN}]"), 3), (re.compile(f"[{KANA}\u1100-\u11ff\uac00-\ud7a3]"), 2))
SHARE_OF_SCRIPT = 0.5  # of the letters of a side that must be of its scripts
SURE = 0.9  # probability from which on another language is believed
FEWEST_LETTERS = 20  # of a side whose language can be detected
MARKUP = re.compile(
    r"<[^<>]*>|&#?\w+;|\{[^{}]*\}|%\(\w+\)[a-z]|%[sd]"  # tags, entities, placeholders
    r"|(?:https?://|www\.)\S+|(?<![\w.+-])[\w.+-]+@[\w.-]+\.\w+"  # links and addresses
    r"|[|#*_=~^\\/`{}<>\[\]]+"
)
NUMBER = re.compile(r"\d+(?:[.,:\u00a0\u202f'’]\d+)*")


class Rule(NamedTuple):
    """What a rule is called in counts, whether it drops (source, target) at a value, and which value is proposed."""

    reason: str
    drops: Callable[[str, str, Any], bool]
    proposal: Any


def is_identical(source: str, target: str, value: bool = True) -> bool:
    """Whether both sides are the same but for case and spaces at their ends."""
    return source.strip().casefold() == target.strip().casefold()


def is_out_of_ratio(source: str, target: str, ratio: float) -> bool:
    """Whether one side says more than `ratio` times as much as the other, with ALWAYS_THERE added to both."""
    lengths = letters_said(source.strip()) + ALWAYS_THERE, letters_said(target.strip()) + ALWAYS_THERE
    return max(lengths) > ratio * min(lengths)


def letters_said(text: str) -> int:
    """How many characters of an alphabet a text stands for: a character of a script of words or syllables says more."""
    return len(text) + sum((weight - 1) * len(pattern.findall(text)) for pattern, weight in SAYING_MORE)


def has_long_word(source: str, target: str, most: int) -> bool:
    """Whether a side has a word of more than `most` characters; a character of a script without spaces is a word."""
    return any(len(word) > most for side in (source, target) for word in UNSPACED_CHARACTER.sub(" ", side).split())


@functools.lru_cache(maxsize=2**16)
def script_of(character: str) -> str | None:
    """The first word of a letter's Unicode name, "LATIN", "CYRILLIC" or "CJK"; None for what is no letter."""
    return unicodedata.name(character, "").partition(" ")[0] or None if character.isalpha() else None


@functools.cache
def known_scripts() -> frozenset[str]:
    """Every word that `script_of` returns."""
    return frozenset(filter(None, map(script_of.__wrapped__, map(chr, range(sys.maxunicode + 1)))))


def is_of_other_script(text: str, scripts: Sequence[str]) -> bool:
    """Whether less than SHARE_OF_SCRIPT of the letters of a text are of `scripts`. Without letters it is not."""
    letters = [script for script in map(script_of, text) if script]
    return sum(script in scripts for script in letters) < SHARE_OF_SCRIPT * len(letters)


def has_other_language(source: str, target: str, languages: tuple[str, str]) -> bool:
    """Whether a side is surely of another language than its own. Raises ConfigError without the package py3langid."""
    return any(is_of_other_language(text, code) for text, code in zip((source, target), languages, strict=True))


def is_of_other_language(text: str, code: str) -> bool:
    """Whether the detector takes a text for another language, with a probability of at least SURE."""
    if sum(map(str.isalpha, text)) < FEWEST_LETTERS:
        return False
    language, probability = detector().classify(text)
    return language != code and probability >= SURE


def detector() -> Any:
    """The detector of languages (py3langid). Raises ConfigError if it is not installed."""
    return identifier("data.clean.languages", ", or leave that key out")


def can_detect(languages: Sequence[str]) -> bool:
    """Whether the detector is installed and knows these codes."""
    return importlib.util.find_spec("py3langid") is not None and set(languages) <= set(detector().labels)


def check_languages(languages: Sequence[str]) -> None:
    """Raises ConfigError for a code that the detector does not know."""
    if unknown := sorted(set(languages) - set(detector().labels)):
        raise ConfigError(
            f"data.clean.languages is true, but {unknown[0]!r} is no language that the detector knows: set "
            "data.source_language and data.target_language to codes of two letters, or leave data.clean.languages out."
        )


def has_other_numbers(source: str, target: str, value: bool = True) -> bool:
    """Whether the sides have different numbers in digits. 1,000.5 and 1.000,5 are one: separators do not count."""
    return numbers_of(source) != numbers_of(target)


def numbers_of(text: str) -> list[str]:
    """The digits of each number of a text, sorted, in ASCII whatever their script."""
    numbers = NUMBER.findall(text)
    return sorted("".join(str(unicodedata.digit(each)) for each in number if each.isdigit()) for number in numbers)


def is_mostly_markup(source: str, target: str, value: bool = True) -> bool:
    """Whether a side has more characters in tags, links, placeholders and the like than outside of them."""
    return any(_markup(side) > len("".join(side.split())) / 2 for side in (source, target))


def _markup(text: str) -> int:
    return sum(len("".join(match.split())) for match in MARKUP.findall(text))


RULES = {  # by key, in the order in which they are asked
    "identical": Rule("identical", is_identical, True),
    "length_ratio": Rule("of very different lengths", is_out_of_ratio, 3.0),
    "longest_word": Rule("with a very long word", has_long_word, 40),
    "markup": Rule("mostly markup", is_mostly_markup, True),
    "source_scripts": Rule(
        "with a source in another script", lambda source, target, scripts: is_of_other_script(source, scripts), None
    ),
    "target_scripts": Rule(
        "with a target in another script", lambda source, target, scripts: is_of_other_script(target, scripts), None
    ),
    "numbers": Rule("with different numbers", has_other_numbers, True),
    "languages": Rule("in another language", has_other_language, None),
}
DUPLICATES = "duplicates"  # the one rule that is about all pairs before
DUPLICATE = "repeated"  # its reason


class Cleaner:
    """Drops pairs by the rules of `settings`, from a key of RULES, or DUPLICATES, to its value. One pass over a text.

    tags: pieces that may stand before a source, which no rule looks at.

    It remembers 8 bytes of each pair, about 100 in memory, if duplicates are to be dropped, and nothing otherwise.
    """

    def __init__(self, settings: Mapping[str, Any], tags: Sequence[str] = ()):
        self.rules = [(rule, settings[key]) for key, rule in RULES.items() if key in settings]
        self.tags = tuple(tags)
        self._seen = set() if settings.get(DUPLICATES) else None

    def reason_to_drop(self, source: str, target: str) -> str | None:
        """Why this pair is dropped: the reason of the first rule that drops it; None if none does."""
        text = next((source[len(tag) :] for tag in self.tags if source.startswith(tag)), source)
        for rule, value in self.rules:
            if rule.drops(text, target, value):
                return rule.reason
        if self._seen is None:
            return None
        key = hashlib.blake2b(f"{source}\n{target}".encode(), digest_size=8).digest()
        if key in self._seen:
            return DUPLICATE
        self._seen.add(key)
        return None
