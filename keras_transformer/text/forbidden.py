"""Phrases that no translation may have: a translation that has one is searched again without it."""

from collections.abc import Callable, Sequence

import numpy as np

from keras_transformer.ground.errors import InputError
from keras_transformer.ground.tokens import PAD
from keras_transformer.pieces.normalization import SPACES, members
from keras_transformer.pieces.translation import Translation
from keras_transformer.text.folding import folded
from keras_transformer.text.glossary import Glossary, Term, lower

ROUNDS = 8  # searches of a line at most: a phrase may be written in several ways, each of which is forbidden when seen

MOST_PHRASE_CHARACTERS = 1000  # of the phrases of a line that a request forbids
TOO_LONG = f"The forbidden phrases of a line may have {MOST_PHRASE_CHARACTERS} characters together."
HAS_TAB = "A forbidden phrase has a tab: give phrases alone, one per line, without flags."
NO_TEXT = "The forbidden phrases must be UTF-8."
EDGES = "".join(members(SPACES))

Sequences = tuple[tuple[int, ...], ...]
Search = Callable[[list[int], list[Sequences]], list[list[Translation]]]


def forbidden_phrases(text: bytes) -> Glossary:
    """Return the phrases of a line that a request forbids, one per line of `text`; blank ones are none.

    Raises InputError for what `read_forbidden` of export/graph/forbidden.py refuses.
    """
    try:
        phrases = [phrase for line in text.decode().split("\n") if (phrase := line.strip(EDGES))]
    except UnicodeDecodeError:
        raise InputError(NO_TEXT) from None
    if any("\t" in phrase for phrase in phrases):
        raise InputError(HAS_TAB)
    if sum(map(len, phrases)) > MOST_PHRASE_CHARACTERS:
        raise InputError(TOO_LONG)
    return Glossary([Term(phrase, lower(folded(phrase).text) or phrase) for phrase in phrases])


def search_without(
    search: Search, phrases: Sequence[Glossary], decode: Callable[[Sequence[int]], str]
) -> list[list[Translation]]:
    """Return the translations of lines, none of which has one of the phrases of its line.

    A line whose translations have none is searched once, as without phrases. If one has a phrase, the tokens that wrote
    it are forbidden for this line, and it is searched again. One may still have one after ROUNDS searches.

    search: from numbers of lines, and sequences of tokens that each must not have, to translations, best first.
    decode: from tokens to their text.
    """
    results = search(list(range(len(phrases))), [()] * len(phrases))
    watched = [number for number, of_line in enumerate(phrases) if of_line.terms]
    forbidden: dict[int, Sequences] = {}
    for _ in range(ROUNDS - 1):
        for number in watched:
            if found := tuple(ids for each in results[number] for ids in tokens_of(each, phrases[number], decode)):
                forbidden[number] = tuple(dict.fromkeys([*forbidden.get(number, ()), *found]))
        again = [n for n in watched if any(phrases[n].found(translation.text) for translation in results[n])]
        if not again:
            return results
        for number, translations in zip(again, search(again, [forbidden[number] for number in again]), strict=True):
            results[number] = translations
    return results


def tokens_of(
    translation: Translation, phrases: Glossary, decode: Callable[[Sequence[int]], str]
) -> list[tuple[int, ...]]:
    """Return the tokens that wrote each phrase in a translation."""
    matches = list(phrases.matches(translation.text))
    if not matches:
        return []
    ends = [len(decode(translation.ids[:count])) for count in range(len(translation.ids) + 1)]
    sequences = []
    for start, end, *_ in matches:
        last = next((count for count, reached in enumerate(ends) if reached >= end), len(translation.ids))
        first = max(count for count in range(last) if ends[count] <= start)
        sequences.append(translation.ids[first:last])
    return sequences


def rule_of_forbidden(sequences: Sequence[Sequences]) -> np.ndarray:
    """Return the rule `forbidden` of a search (search/rules/forbidden.py): int32 (B, N, M)."""
    most = max(map(len, sequences))
    longest = max((len(tokens) for of_line in sequences for tokens in of_line), default=1)
    rule = np.full((len(sequences), most, longest), PAD, np.int32)
    for rows, of_line in zip(rule, sequences, strict=True):
        for row, tokens in zip(rows, of_line, strict=False):
            row[longest - len(tokens) :] = tokens
    return rule
