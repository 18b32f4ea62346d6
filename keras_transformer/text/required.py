"""Phrases that a translation must have: from texts to the rule `required` of a search (search/rules/required.py)."""

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from keras_transformer.ground.errors import InputError
from keras_transformer.ground.tokens import BOS, PAD, UNK
from keras_transformer.pieces.normalization import INVISIBLE, SPACE, SPACES
from keras_transformer.pieces.prefixes import GUARD
from keras_transformer.pieces.scripts import UNSPACED
from keras_transformer.text.glossary import Glossary
from keras_transformer.text.numbers import numbers_in
from keras_transformer.text.occurrences import capitalised, places_of_phrase
from keras_transformer.text.placeholders import SYMBOL
from keras_transformer.text.spans import bare
from keras_transformer.text.words import ATTACHED as ATTACHED_SIGN

if TYPE_CHECKING:  # it needs sentencepiece, which not every engine has
    from keras_transformer.pieces.tokenizer import Tokenizer

LETTER = rf"(?:{ATTACHED_SIGN.pattern}|[^\W{UNSPACED}])"  # of a word that ends where another character follows
ATTACHED = rf"[{UNSPACED},.;:!?)\]}}]"  # a phrase that begins with it stands behind a word without a space
MOST_TOKENS = 100  # of the phrases of a line: the time of their search grows with the third power
# Natural log-probability per word of phrases that fit. Of test_2016 by presets/multi30k_en_de, 78 per cent of 120 words
# from references of other sentences cost more, and 30 per cent of 105 from their own, many of which do not fit either
MOST_LOST = 8.0
# By the option of a search: the phrases that a source itself makes required. export/graph/phrases.py has the same rows
FROM_SOURCE: dict[str, Callable[[str], list[str]]] = {"require_numbers": numbers_in}
NO_PIECES_FOR_IT = "has characters for which this model has no piece, so no translation has it: leave it out."
HAS_SYMBOL = "has a placeholder of a protected span: leave it out."
SPACES_IN = f"[{SPACES}]+"  # for re and for RE2
# What nobody sees divides no word: it may be followed by a letter of the same one
_BEGINS_INSIDE, _ENDS_IN_WORD = re.compile(f"[{INVISIBLE}]|{LETTER}"), re.compile(rf".*{LETTER}\Z", re.DOTALL)


class Phrase(NamedTuple):
    """A phrase as the tokenizer writes it, and its tokens inside a sentence.

    `first_tokens`: those at the beginning of a text, if they differ, else none. `capital_tokens`: those that it has
    there with its first letter in upper case, if these differ, else none.
    """

    text: str
    tokens: tuple[int, ...]
    first_tokens: tuple[int, ...] = ()
    capital_tokens: tuple[int, ...] = ()

    @property
    def most_tokens(self) -> int:
        return max(len(self.tokens), len(self.first_tokens), len(self.capital_tokens))

    def ways(self) -> list[tuple[int, ...]]:
        """Return its ways in the rule `required` of a search."""
        first = [self.first_tokens or self.tokens] if self.first_tokens or self.capital_tokens else []
        capital = [self.capital_tokens] if self.capital_tokens else []
        return [self.tokens, *((BOS, *tokens) for tokens in (*first, *capital))]


Phrases = tuple[Phrase, ...]


class PhraseReader:
    """Turns texts into Phrases, with `encode_target` of a tokenizer."""

    def __init__(self, tokenizer: "Tokenizer"):
        self.tokenizer = tokenizer

    @functools.cached_property
    def guard(self) -> list[int]:
        """The tokens of what stands in front of a phrase while it is divided into pieces."""
        return self.tokenizer.encode_target(GUARD)

    @functools.cached_property
    def word_edges(self) -> np.ndarray:
        """The rule `word_edges` of a search."""
        return word_edges(self.tokenizer.surfaces())

    def read(self, texts: Iterable[str], longest: int) -> Phrases:
        """Return the different phrases of a line.

        Raises InputError if there is no piece for a part of one, and if they have more than MOST_TOKENS, or `longest`
        or more.
        """
        phrases = tuple(dict.fromkeys(map(self._phrase, texts)))
        most = min(longest - 1, MOST_TOKENS)
        if (count := sum(phrase.most_tokens for phrase in phrases)) > most:
            raise InputError(
                f"The phrases {', '.join(repr(phrase.text[:60]) for phrase in phrases[:3])} have {count} tokens; at "
                f"most {most} are possible for a line: give fewer or shorter ones."
            )
        return phrases

    def _phrase(self, text: str) -> Phrase:
        text = re.sub(SPACES_IN, " ", text).strip(" ")
        begin = GUARD if re.match(ATTACHED, text) else f"{GUARD} "
        tokens = self.tokenizer.encode_target(begin + text)
        first_tokens = self.tokenizer.encode_target(text)
        if tokens[: len(self.guard)] != self.guard:  # it is one piece with what follows it
            tokens = [*self.guard, *first_tokens]
        tokens = tokens[len(self.guard) :]
        if UNK in tokens or not tokens:
            raise InputError(f"The phrase {text[:60]!r} {NO_PIECES_FOR_IT}")
        if SYMBOL.search(text):
            raise InputError(f"The phrase {text[:60]!r} {HAS_SYMBOL}")
        capital_tokens = self.tokenizer.encode_target(capitalised(text))
        if UNK in first_tokens or UNK in capital_tokens or capital_tokens == first_tokens:
            capital_tokens = []
        if first_tokens == tokens or UNK in first_tokens:
            first_tokens = []
        return Phrase(self.tokenizer.decode(tokens).strip(), tuple(tokens), tuple(first_tokens), tuple(capital_tokens))


def check_not_forbidden(phrases: Iterable[str], forbidden: Glossary) -> None:
    """Raises InputError if a phrase that must come has one that must not."""
    for phrase in phrases if forbidden.terms else ():
        if found := next(forbidden.matches(phrase), None):
            raise InputError(
                f"The phrase {phrase[:60]!r} must come, and {phrase[slice(*found[:2])]!r} must not: keep one."
            )


def rule_of_required(phrases: Sequence[Phrases]) -> np.ndarray:
    """Return the rule `required` of a search: int32 (B, N, W, M)."""
    ways = [[phrase.ways() for phrase in of_line] for of_line in phrases]
    most = max((len(of_phrase) for of_line in ways for of_phrase in of_line), default=1)
    longest = max((len(way) for of_line in ways for of_phrase in of_line for way in of_phrase), default=1)
    rule = np.full((len(phrases), max(map(len, phrases)), most, longest), PAD, np.int32)
    for line, of_line in enumerate(ways):
        for number, of_phrase in enumerate(of_line):
            for way, tokens in enumerate(of_phrase):
                rule[line, number, way, : len(tokens)] = tokens
    return rule


def word_edges(surfaces: Sequence[bytes]) -> np.ndarray:
    """Return which pieces begin inside a word, and which end with a letter: bool (2, V).

    A byte that is no character may be a part of a letter.
    """
    texts = [surface.decode("utf-8", "replace").replace("\ufffd", GUARD).replace(SPACE, " ") for surface in surfaces]
    return np.array([[bool(edge.match(text)) for text in texts] for edge in (_BEGINS_INSIDE, _ENDS_IN_WORD)])


def has_phrase(text: str, phrase: str) -> bool:
    """Return whether a text has a phrase that is not a part of longer words, whatever tags are in between.

    At its beginning the first letter may be in upper case.
    """
    return not phrase or any(any(places_of_phrase(phrase, each)) for each in (text, bare(text)))


def is_missing(phrase: str, text: str) -> bool:
    """Return whether a text does not have a phrase, however a tokenizer may have written it.

    Capital letters count, as they do in a search, but in a text without any, as of a model that writes none.
    """
    text, phrase = plain(text), plain(phrase)
    return not has_phrase(text, phrase.lower() if text == text.lower() else phrase)


def plain(text: str) -> str:
    """Return a text without what a tokenizer may change: forms of characters, and spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).split())


def loss_allowed(phrases: Iterable[str]) -> float:
    """Return by how much phrases that fit may lower the natural log-probability of a translation."""
    return MOST_LOST * sum(len(phrase.split()) for phrase in phrases)
