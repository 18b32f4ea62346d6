"""Phrases that no translation may have: a translation that has one is searched again without it."""

from collections.abc import Callable, Sequence

import numpy as np

from keras_transformer.ground.tokens import PAD
from keras_transformer.pieces.translation import Translation
from keras_transformer.text.glossary import Glossary

ROUNDS = 8  # searches of a line at most: a phrase may be written in several ways, each of which is forbidden when seen

Sequences = tuple[tuple[int, ...], ...]
Search = Callable[[list[int], list[Sequences]], list[list[Translation]]]


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
