"""Words that certainly translate each other, by rule: what alignments are judged by where nobody made a gold.

A link of a pair of sentences is certain if its words are the same name or number, or if each is what the other is
mostly translated to in the whole corpus (IBM Model 1 in both directions), and if both are once in their sentence.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from keras_transformer.shortlist.lexicon import Lexicon, learned_lexicon

CERTAIN = 0.5  # of the words that a word is translated to, at least such a share is this one
FEWEST = 5  # times that a word of the dictionary is in the corpus
FEWEST_WORDS = 5  # of each side of a pair that is judged
MARKS = ".,;:!?…()[]{}<>\"'“”„‚‘’«»-–—"

Link = tuple[int, int]  # numbers of a word of the source and of one of the target, from 0


class LinkedPair(NamedTuple):
    """A pair of sentences, by its number, with the certain links among its words."""

    number: int
    source: str
    target: str
    links: Sequence[Link]


def words_of(text: str) -> list[str]:
    """Return the words of a text as a dictionary has them, one for each that stands between spaces."""
    return [word.strip(MARKS).casefold() for word in text.split()]


def is_name(word: str) -> bool:
    """Return whether a word has a digit, or a capital after its first letter, as 42, LibreOffice and SUM have."""
    word = word.strip(MARKS)
    return any(map(str.isdigit, word)) or any(map(str.isupper, word[1:]))


class CertainLinks:
    """What each word of a corpus is mostly translated to, in both directions."""

    def __init__(self, pairs: Iterable[tuple[str, str]]):
        sides = [[words_of(text) for text in texts] for texts in zip(*pairs, strict=True)] or [[], []]
        counts = [Counter(word for words in side for word in words if word) for side in sides]
        words = sorted(word for word in counts[0] | counts[1] if max(of[word] for of in counts) >= FEWEST)
        ids = {word: number for number, word in enumerate(words)}
        sources, targets = ([[ids[word] for word in words if word in ids] for words in side] for side in sides)
        forward = certain(learned_lexicon(sources, targets, len(words)))
        backward = certain(learned_lexicon(targets, sources, len(words)))
        both = forward & {(source, target) for target, source in backward}
        self._translation = {words[source]: words[target] for source, target in both}

    def of_pair(self, source: str, target: str) -> list[Link]:
        """Return the certain links of a pair."""
        written = source.split()
        sides = words_of(source), words_of(target)
        of_source, of_target = ({word: n for n, word in enumerate(side) if side.count(word) == 1} for side in sides)
        links = []
        for word, number in of_source.items():
            other = word if is_name(written[number]) and word in of_target else self._translation.get(word)
            if word and other in of_target:
                links.append((number, of_target[other]))
        targets = Counter(target for _, target in links)
        return [(source, target) for source, target in links if targets[target] == 1]

    def best_known(self, pairs: Iterable[tuple[str, str]], count: int) -> list[LinkedPair]:
        """Return the pairs, at most `count`, of whose target words the largest share has a certain link."""
        found = [
            LinkedPair(number, source, target, links)
            for number, (source, target) in enumerate(pairs)
            if min(len(source.split()), len(target.split())) >= FEWEST_WORDS and (links := self.of_pair(source, target))
        ]
        found.sort(key=lambda pair: -len(pair.links) / len(pair.target.split()))
        return found[:count]


def certain(lexicon: Lexicon) -> set[tuple[int, int]]:
    """Return the entries whose probability is at least CERTAIN."""
    chosen = np.flatnonzero(lexicon.probabilities >= CERTAIN)
    return set(zip(lexicon.sources[chosen].tolist(), lexicon.targets[chosen].tolist(), strict=True))
