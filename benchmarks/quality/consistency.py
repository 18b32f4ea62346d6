"""Whether translations of a document agree: the same term for a source term, and the pronoun of the reference."""

import collections
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

LONGEST = 1  # words of a term
REPEATED = 2  # sentences of a document that have a term, at least
RAREST, COMMONEST = 4, 0.03  # sentences of the text that have it: so many, and this share of them at most
DICE = 0.6  # of how often a term and its translation stand in the same pair, at least

WORD = re.compile(r"\w[\w'-]*")
PRONOUNS = "er", "sie", "es"
# "it" as subject, but for "it is possible to" and "it is true that", which stand for nothing earlier
BEFORE = r"(?:^|[,;:(] |\b(?:and|but|or|if|when|that|because|since|until|while|as|unless|before|after|where|so|than) )"
SUBJECT = re.compile(BEFORE + r"it (?!(?:is|was|will be|may be|can be)\b.* (?:to|that|whether|if)\b)\w+", re.IGNORECASE)
ADDRESS = re.compile(r"\b(?:you|your|yourself)\b", re.IGNORECASE)

Grams = frozenset[tuple[str, ...]]


def grams(text: str) -> Grams:
    """Return the sequences of one to LONGEST words of a text, in lower case, that have a letter in each word."""
    words = [word.lower() for word in WORD.findall(text)]
    found = (
        tuple(words[start : start + length])
        for length in range(1, LONGEST + 1)
        for start in range(len(words) - length + 1)
    )
    return frozenset(gram for gram in found if all(any(map(str.isalpha, word)) for word in gram))


class Term(NamedTuple):
    """A source term of a document: the sentences that have it, and its translation in their references."""

    term: tuple[str, ...]
    sentences: tuple[int, ...]
    reference: tuple[str, ...]


class Association:
    """How often terms of two sides stand in the same pair: 2 n(a, b) / (n(a) + n(b)) (Dice 1945)."""

    def __init__(self, sources: Sequence[Grams], targets: Sequence[Grams]):
        self.places_of: tuple[dict, dict] = (places(sources), places(targets))
        self.most = COMMONEST * len(sources)

    def translations(self, term: tuple[str, ...], found: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """Return those of some target terms that translate a source term, best first."""
        of_term = self.places_of[0][term]
        scores = {}
        for other in found:
            of_other = self.places_of[1][other]
            if other != term and len(of_other) <= 2 * self.most:
                scores[other] = 2 * len(of_term & of_other) / (len(of_term) + len(of_other))
        return sorted((each for each in scores if scores[each] >= DICE), key=lambda each: (-scores[each], each))


def places(texts: Sequence[Grams]) -> dict[tuple[str, ...], set[int]]:
    """Return the numbers of the texts that have each sequence of words."""
    numbers = collections.defaultdict(set)
    for number, text in enumerate(texts):
        for gram in text:
            numbers[gram].add(number)
    return numbers


class Terms:
    """The terms of a text that its references translate in one way within a document."""

    def __init__(self, sources: Sequence[Grams], terms: Sequence[Term]):
        self.sources, self.terms = sources, terms

    def same(self, translations: Sequence[str]) -> np.ndarray:
        """Return for each term 1.0 if all translations of its sentences have one and the same translation of it."""
        targets = [grams(text) for text in translations]
        association = Association(self.sources, targets)
        found = [association.translations(each.term, common(targets, each)) for each in self.terms]
        return np.array([len(translations) > 0 for translations in found], float)

    def as_reference(self, translations: Sequence[str]) -> np.ndarray:
        """Return for each term 1.0 if all translations of its sentences have the reference's translation of it."""
        targets = [grams(text) for text in translations]
        return np.array([each.reference in common(targets, each) for each in self.terms], float)


def common(targets: Sequence[Grams], term: Term) -> Grams:
    """Return the sequences of words that the targets of all sentences of a term have."""
    return frozenset.intersection(*(targets[number] for number in term.sentences))


def terms_of(pairs: Sequence[tuple[str, str]], documents: Sequence[str]) -> Terms:
    """Return the terms of documents that the references translate in one way.

    Of two that the same sentences have, it is the longer one.
    """
    sources, targets = ([grams(pair[side]) for pair in pairs] for side in (0, 1))
    association = Association(sources, targets)
    found: dict[tuple[int, ...], Term] = {}
    for numbers in by_document(documents):
        in_document = collections.defaultdict(list)
        for number in numbers:
            for gram in sources[number]:
                in_document[gram].append(number)
        for gram, sentences in sorted(in_document.items(), key=lambda item: (-len(item[0]), item[0])):
            is_rare = RAREST <= len(association.places_of[0][gram]) <= association.most
            if len(sentences) < REPEATED or not is_rare or tuple(sentences) in found:
                continue
            term = Term(gram, tuple(sentences), ())
            if translations := association.translations(gram, common(targets, term)):
                found[term.sentences] = term._replace(reference=translations[0])
    return Terms(sources, list(found.values()))


def by_document(documents: Sequence[str]) -> Iterator[list[int]]:
    """Yield the numbers of the pairs of each document."""
    for _, group in itertools.groupby(range(len(documents)), key=documents.__getitem__):
        yield list(group)


def pronoun_of(text: str, source: str) -> str:
    """Return which of PRONOUNS a German text has, "" for none and for several.

    "Sie" is an address, but at the beginning of a translation of a source without "you".
    """
    words = WORD.findall(text)
    found = {word for word in words if word in PRONOUNS}
    if words and words[0].lower() in PRONOUNS and not (words[0] == "Sie" and ADDRESS.search(source)):
        found.add(words[0].lower())
    return found.pop() if len(found) == 1 else ""


def pronouns(pairs: Sequence[tuple[str, str]], documents: Sequence[str]) -> list[int]:
    """Return the numbers of the pairs whose source has "it" as subject and whose reference has one of PRONOUNS.

    They are not the first of their document, so that what the pronoun stands for may be in an earlier sentence.
    """
    later = {number for numbers in by_document(documents) for number in numbers[1:]}
    return [
        number
        for number, (source, reference) in enumerate(pairs)
        if number in later and SUBJECT.search(source) and pronoun_of(reference, source)
    ]
