"""What a line asks of its translation, whatever translates it: a text to begin with, phrases, spans, languages."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from keras_transformer.ground.errors import ConfigError
from keras_transformer.pieces.batching import list_of_lines
from keras_transformer.pieces.normalization import is_blank
from keras_transformer.text.required import FROM_SOURCE
from keras_transformer.text.spans import PLACEHOLDERS, Protection

# What a line may ask for, by the names that requests have for it
PREFIX, REQUIRED, FORBIDDEN = "target_prefix", "required", "forbidden"
SOURCE_LANGUAGE, TARGET_LANGUAGE = "source_language", "target_language"
PROTECT, KEEP, GLOSSARY = "protect", "keep", "glossary"
FORBIDDEN_FLAGS = "flags of forbidden"
CONSTRAINTS = frozenset({PREFIX, REQUIRED, FORBIDDEN, FORBIDDEN_FLAGS})  # what a search itself sees to
SPANS = frozenset({PROTECT, KEEP, GLOSSARY})  # what the road itself does: every engine takes them


class Ask(NamedTuple):
    """What a line asks of its translation: a text with which it begins, phrases that it has, and a Protection.

    from_source: options of FROM_SOURCE by which phrases of the line itself must come too; those of the engine's search
    are asked by all lines. source_language, target_language: codes; "" for what is left to the engine. limit: tokens
    of its translation, at most, of an engine that `takes_limits`; 0 for as many as the engine allows.
    """

    prefix: str = ""
    required: tuple[str, ...] = ()
    protection: Protection = Protection()
    from_source: frozenset[str] = frozenset()
    source_language: str = ""
    target_language: str = ""
    limit: int = 0

    @property
    def names(self) -> frozenset[str]:
        """What of the abilities of an engine it needs."""
        asked = {
            PREFIX: self.prefix,
            REQUIRED: self.required or self.from_source,
            FORBIDDEN: self.protection.forbidden.terms,
            FORBIDDEN_FLAGS: any(term.flags for term in self.protection.forbidden.terms),
            PROTECT: self.protection.kinds or self.protection.has_marks,
            GLOSSARY: self.protection.glossary.terms,
        }
        return frozenset(name for name, value in asked.items() if value)

    def of_source(self, text: str) -> "Ask":
        """Return what it asks of a text, some of whose own phrases must come if it asks for them."""
        phrases = [phrase for name in sorted(self.from_source) for phrase in FROM_SOURCE[name](text)]
        return self._replace(required=tuple(dict.fromkeys((*self.required, *phrases)))) if phrases else self

    def of_branches(self) -> "Ask":
        """Return what a line asks for, of a sentence of its ICU message."""
        kinds = tuple(dict.fromkeys((*self.protection.kinds, PLACEHOLDERS)))
        return self._replace(protection=dataclasses.replace(self.protection, kinds=kinds, is_branch=True))

    def of_languages(self) -> "Ask":
        """Return an ask that has the languages of this one, and nothing else."""
        return Ask(source_language=self.source_language, target_language=self.target_language)

    def without_marks(self) -> "Ask":
        """Return what a line asks for that has no signs of text/marks.py."""
        if not self.protection.has_marks:
            return self
        return self._replace(protection=dataclasses.replace(self.protection, has_marks=False))


NOTHING = Ask()


def asks_of(
    lines: int,
    prefixes: Iterable[str] | None = None,
    protection: Protection = NOTHING.protection,
    required: Iterable[Iterable[str]] | None = None,
) -> list[Ask]:
    """Return what each line asks for. Raises ConfigError if there is not one prefix, or list of phrases, per line."""
    begins = [""] * lines if prefixes is None else list_of_lines(prefixes, "Prefix")
    if len(begins) != lines:
        raise ConfigError(f"There are {len(begins)} prefixes for {lines} lines: give one per line.")
    phrases = [()] * lines if required is None else list(map(phrases_of, required))
    if len(phrases) != lines:
        raise ConfigError(
            f"There are phrases for {len(phrases)} lines, and {lines} lines: give a list of phrases per line."
        )
    return [Ask(*of_line, protection) for of_line in zip(begins, phrases, strict=True)]


def of_lines(language: str | Sequence[str], lines: int) -> Sequence[str]:
    """Return the language of each line: one, or one per line. Raises ConfigError if there are others."""
    if isinstance(language, str | bytes) or not isinstance(language, Sequence):
        return [language] * lines  # `Languages.chosen` refuses what is no text
    if len(language) != lines:
        raise ConfigError(f"There are {len(language)} languages for {lines} lines: give one, or one per line.")
    return language


def phrases_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the different phrases of a line, without blank ones. Raises ConfigError if they are one text."""
    if isinstance(texts, str):
        raise ConfigError(f"The phrases of a line are the text {texts[:60]!r}: give a list of texts per line.")
    return tuple(dict.fromkeys(text.strip() for text in list_of_lines(texts, "Phrase") if not is_blank(text)))
