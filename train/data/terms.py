"""Terms in training text: words of the reference, written into the source beside theirs, anew in every epoch."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError

import numpy as np

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.tokens import EOS, UNK
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.text.terms import AFTER, BEFORE, with_terms

from ..config.training import RowLengths
from .encoding import EncodedPairs
from .placeholders import with_sentences
from .word_pairs import WordPair, WordPairs

CHUNK = 10_000  # pairs after which it looks whether to give up
MOST_PAIRS = 100_000  # that words are learned from
MOST_TERMS = 3  # in a sentence


class Terms:
    """Writes one to three terms into the source of a share of the pairs, so that a model learns to use them.

    A term is a word that the reference has for a word of the source (word_pairs.py), in the form that a glossary would
    have. Which words belong together is learned from the pairs of the first call, before they are changed otherwise.
    Which pairs and words are drawn is a function of the pairs and the Generator. A pair stays as it is if it has no two
    words that belong together, has our signs already, or would not fit into a row. tags: with which a source may begin.

    Raises ConfigError for a tokenizer that does not keep our signs.
    """

    def __init__(self, tokenizer: Tokenizer, share: float, row_lengths: RowLengths, tags: Sequence[str] = ()):
        self.tokenizer, self.share, self.row_lengths = tokenizer, share, row_lengths
        self.tags = (*tags, *tokenizer.tags)
        self._learned: list[tuple[EncodedPairs, WordPairs]] = []  # of each shard
        self._lock = threading.Lock()
        signs = f"a{BEFORE} a{AFTER} a"
        if tokenizer.decode(tokenizer.encode(signs)) != signs:
            raise ConfigError(
                f"data.terms is {share}, but the tokenizer does not keep the signs {BEFORE} and {AFTER} that stand "
                "around a term: leave data.terms out, or have a tokenizer trained in another run_folder."
            )

    def __call__(
        self, pairs: EncodedPairs, rng: np.random.Generator, gives_up: Callable[[], bool] = lambda: False
    ) -> EncodedPairs:
        """Return the same pairs, in the same order, some with terms; arguments as for BpeDropout."""
        word_pairs = self._word_pairs_of(pairs, gives_up)
        sources = {}  # number of a pair -> ids of its source
        for done, number in enumerate(np.flatnonzero(rng.random(len(pairs)) < self.share).tolist()):
            if done % CHUNK == 0 and gives_up():
                raise CancelledError("The epoch is not needed any more.")
            source, target = self._text_of(pairs, number)
            tag = next((tag for tag in self.tags if source.startswith(tag)), "")
            found = word_pairs.of_pair(source, target, first=len(tag))
            chosen = drawn(found, rng)
            if chosen and BEFORE not in source and AFTER not in source:
                terms = [(pair.start, pair.end, pair.term) for pair in chosen]
                ids = [*self.tokenizer.encode(with_terms(source, terms)), EOS]
                if len(ids) <= self.row_lengths.source:
                    sources[number] = ids
        with_their_terms = with_sentences(pairs.source, list(sources), list(sources.values()))
        return EncodedPairs(with_their_terms, pairs.target, pairs.skipped, pairs.keys)

    def _word_pairs_of(self, pairs: EncodedPairs, gives_up: Callable[[], bool]) -> WordPairs:
        """Return which words of a shard belong together, learned from at most MOST_PAIRS, at equal distances."""
        with self._lock:
            for known, word_pairs in self._learned:
                if known is pairs:
                    return word_pairs
            texts = []
            for number in range(0, len(pairs), -(-len(pairs) // MOST_PAIRS)):
                if len(texts) % CHUNK == 0 and gives_up():
                    raise CancelledError("The epoch is not needed any more.")
                texts.append(self._text_of(pairs, number))
            word_pairs = WordPairs.learned(texts)
            self._learned.append((pairs, word_pairs))
            return word_pairs

    def _text_of(self, pairs: EncodedPairs, number: int) -> tuple[str, str]:
        """Return the text of a pair; empty for one that has a piece without a text."""
        source, target = pairs.source[number], pairs.target[number]
        if UNK in source or UNK in target:
            return "", ""
        return self.tokenizer.decode(source.tolist()), self.tokenizer.decode(target.tolist())


def drawn(found: list[WordPair], rng: np.random.Generator) -> list[WordPair]:
    """Return one to three of the pairs, from left to right; none of none."""
    if not found:
        return []
    count = int(rng.integers(1, min(MOST_TERMS, len(found)) + 1))
    return [found[place] for place in sorted(rng.permutation(len(found))[:count].tolist())]
