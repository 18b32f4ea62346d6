"""Which source token each target token of a batch translates: what guided alignment teaches a model to attend to."""

import functools
import logging
from typing import NamedTuple

import numpy as np

from keras_transformer.ground.tokens import EOS
from keras_transformer.shortlist.lexicon import learned_lexicon

from .encoding import EncodedPairs

log = logging.getLogger("train")

MOST_PAIRS = 50_000  # of which the dictionary is made, at equal distances
LEAST = 1e-4  # the product of both probabilities of a link, from which on it counts
DIAGONAL = 8.0  # how fast a link loses with the distance of its tokens in their sentences
NO_LINK = -1


class Dictionary(NamedTuple):
    """Which tokens translate each other, in the order of their keys, with a key at the end that is above all others."""

    keys: np.ndarray  # int64 (N,): source * vocab_size + target
    scores: np.ndarray  # float64 (N,): p(target | source) p(source | target)


class Linker:
    """Links the tokens of the pairs in a batch by a dictionary of a corpus, IBM Model 1 in both directions.

        score(s, t) = p(t | s) p(s | t) exp(-DIAGONAL |i / I - j / J|)    s is token i of I, and t token j of J

    A link is what no other one of either token has a higher score than. The distance decides between words that come
    twice (after Dyer et al. 2013). How many are right: docs/experiments.md, "Guided alignment".
    """

    def __init__(self, pairs: EncodedPairs, vocab_size: int):
        self.pairs, self.vocab_size = pairs, vocab_size

    @functools.cached_property
    def dictionary(self) -> Dictionary:
        """The Dictionary of the corpus, which takes half a minute of 50,000 pairs of sentences."""
        chosen = range(0, len(self.pairs), -(-len(self.pairs) // MOST_PAIRS))
        source, target = (
            [side[number].tolist() for number in chosen] for side in (self.pairs.source, self.pairs.target)
        )
        forward = learned_lexicon(source, target, self.vocab_size)  # its entries are in the order of their keys
        backward = learned_lexicon(target, source, self.vocab_size)  # has the same, turned around
        in_order = np.argsort(backward.targets * self.vocab_size + backward.sources)
        scores = forward.probabilities * backward.probabilities[in_order]
        keys = (forward.sources * self.vocab_size + forward.targets)[scores > LEAST]
        log.info("guided alignment: %s links of pieces in %s pairs", f"{len(keys):,}", f"{len(source):,}")
        return Dictionary(np.append(keys, self.vocab_size**2), np.append(scores[scores > LEAST], 0.0))

    def __call__(self, batch: dict[str, np.ndarray]) -> np.ndarray:
        """Return for each target token the place in its row of the source token that it is linked with, or NO_LINK.

        batch: see train/data/batches.py. Returns int32 (rows, T). The end of a sentence has no link.
        """
        source_ids, labels = batch["source_ids"], batch["labels"]
        source_segments = np.where(source_ids == EOS, 0, batch["source_segments"])
        target_segments = np.where(labels == EOS, 0, batch["target_segments"])
        is_pair = (target_segments[:, :, None] == source_segments[:, None]) & (source_segments[:, None] > 0)
        rows, targets, sources = np.nonzero(is_pair)
        keys = source_ids[rows, sources].astype(np.int64) * self.vocab_size + labels[rows, targets]
        entries = np.searchsorted(self.dictionary.keys, keys)
        found = np.where(self.dictionary.keys[entries] == keys, self.dictionary.scores[entries], 0.0)
        distances = np.abs(relative(source_segments)[rows, sources] - relative(target_segments)[rows, targets])
        scores = np.zeros(is_pair.shape, np.float32)
        scores[rows, targets, sources] = found * np.exp(-DIAGONAL * distances)
        best_source, best_target = scores.argmax(2), scores.argmax(1)  # (rows, T), (rows, S)
        is_mutual = np.take_along_axis(best_target, best_source, 1) == np.arange(labels.shape[1])
        return np.where(is_mutual & (scores.max(2) > 0), best_source, NO_LINK).astype(np.int32)


def relative(segments: np.ndarray) -> np.ndarray:
    """Return the place of each token in its sentence, between 0 and 1: segments int (rows, L) -> the same shape."""
    places, is_first = np.arange(segments.shape[1]), np.diff(segments, axis=1, prepend=-1) != 0
    begins = np.maximum.accumulate(np.where(is_first, places, 0), axis=1)
    is_last = np.diff(segments, axis=1, append=-1) != 0
    ends = np.minimum.accumulate(np.where(is_last, places, places[-1])[:, ::-1], axis=1)[:, ::-1]
    return (places - begins + 0.5) / (ends - begins + 1)
