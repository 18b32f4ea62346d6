"""Which word of a target belongs to a word of its source, and in which form a glossary would have it."""

import collections
import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from keras_transformer.shortlist.lexicon import learned_lexicon

from .corpus import Pair

WORD = re.compile(r"[^\W\d_]{3,}")  # of at least three letters
FEWEST = 3  # times that a word is in the text of its side: of rarer ones little can be learned
LEAST, LEAST_BACK, RELATED = 0.1, 0.05, 0.01  # probabilities: of a translation, of its word, of another form of it
LONGER = 3  # letters that one form of a word may have more than another


class WordPair(NamedTuple):
    """source[start:end] is translated as `target`, whose form in a glossary is `term`."""

    start: int
    end: int
    target: str
    term: str


class WordPairs:
    """Finds words that translate each other, by IBM Model 1 over the words of sentence pairs.

    Two words of a pair belong together if each is the most probable one for the other, with a probability of at least
    LEAST and, backwards, LEAST_BACK: "einem" stands for many words. A word that stands twice on its side is left out.

    A dictionary would have a word in its basic form, as Bergmanis and Pinnis (2021) give it to the model. Without a
    lemmatizer, it is the most frequent of the forms that translate the same source word and begin alike: `alike`.
    """

    def __init__(
        self,
        probabilities: Mapping[str, Mapping[str, float]],
        source_counts: Mapping[str, int],
        target_counts: Mapping[str, int],
    ):
        self._probabilities = probabilities  # by source word in lower case, and target word
        self._counts = source_counts, target_counts
        self._expected: dict[str, float] = collections.defaultdict(float)  # of each target word, from all source words
        for source, of_source in probabilities.items():
            for target, probability in of_source.items():
                self._expected[target] += probability * source_counts[source]
        self._term_of = functools.lru_cache(100_000)(self._most_frequent_form)

    @classmethod
    def learned(cls, pairs: Iterable[Pair]) -> "WordPairs":
        """Learn from sentence pairs, all of which are held in memory as words."""
        sides: tuple[list[list[str]], list[list[str]]] = [], []
        for source, target in pairs:
            sides[0].append([match[0].lower() for match in WORD.finditer(source)])
            sides[1].append([match[0] for match in WORD.finditer(target)])
        counts = [collections.Counter(word for words in side for word in words) for side in sides]
        known = [sorted(word for word, count in of_side.items() if count >= FEWEST) for of_side in counts]
        numbers = [{word: number for number, word in enumerate(words)} for words in known]
        source_ids, target_ids = (
            [[of_side[word] for word in words if word in of_side] for words in side]
            for side, of_side in zip(sides, numbers, strict=True)
        )
        lexicon = learned_lexicon(source_ids, target_ids, vocab_size=max(map(len, known)) + 1)
        probabilities: dict[str, dict[str, float]] = collections.defaultdict(dict)
        likely = lexicon.probabilities >= RELATED
        for source_id, target_id, probability in zip(*(column[likely].tolist() for column in lexicon), strict=True):
            probabilities[known[0][source_id]][known[1][target_id]] = probability
        return cls(probabilities, *counts)

    def of_pair(self, source: str, target: str, first: int = 0) -> list[WordPair]:
        """Return the words of source[first:] with their translations, from left to right."""
        matches = [match for match in WORD.finditer(source) if match.start() >= first]
        words = [match[0].lower() for match in matches]
        targets = [match[0] for match in WORD.finditer(target)]
        best_of_target = {
            word: max(words, key=lambda other: self._probability(other, word)) for word in set(targets) if words
        }
        found = []
        for match, word in zip(matches, words, strict=True):
            best = max(targets, key=lambda other: (self._probability(word, other), other), default="")
            if (
                self._probability(word, best) >= LEAST
                and self._probability(word, best) * self._counts[0][word] >= LEAST_BACK * self._expected[best]
                and best_of_target[best] == word
                and words.count(word) == targets.count(best) == 1
            ):
                found.append(WordPair(*match.span(), best, self._term_of(word, best)))
        return found

    def probability_of(self, source: str, pair: WordPair) -> float:
        """Return the probability of a pair's target, given its word of the source."""
        return self._probability(source[pair.start : pair.end].lower(), pair.target)

    def _probability(self, source: str, target: str) -> float:
        return self._probabilities.get(source, {}).get(target, 0.0)

    def _most_frequent_form(self, source: str, target: str) -> str:
        forms = [form for form in self._probabilities[source] if alike(form, target)]
        return max(forms, key=lambda form: (self._counts[1][form], form))


def alike(first: str, second: str) -> bool:
    """Return whether two words seem to be forms of one: "Mann" and "Männer", but not "Mann" and "Mannschaft".

    They begin with the same letters, accents aside: all but two of the shorter one, and at least three. Either both or
    none has a capital, as only nouns have in German.
    """
    if first[0].isupper() != second[0].isupper():
        return False
    folded = [bare(word) for word in (first, second)]
    lengths = sorted(map(len, folded))
    common = next((place for place in range(lengths[0]) if folded[0][place] != folded[1][place]), lengths[0])
    return lengths[1] - lengths[0] <= LONGER and common >= max(3, lengths[0] - 2)


@functools.lru_cache(100_000)
def bare(word: str) -> str:
    """Return a word in lower case, without accents."""
    return "".join(c for c in unicodedata.normalize("NFD", word.lower()) if not unicodedata.combining(c))
