"""What every head attends to in fixed sentence pairs, and numbers that tell dead and copying heads."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.tokens import BOS
from keras_transformer.pieces.batching import list_of_lines
from keras_transformer.pieces.language_marks import Marks
from keras_transformer.pieces.sources import encoded_lines, padded
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.translation.forced import ATTENTIONS, ForcedDecoder

LONGEST = 32  # pieces of a side, EOS included; longer sides are cut: a picture of more could not be read


class PairAttention(NamedTuple):
    """What every head attends to while the model reads a source and is given its target (teacher forcing).

    Each query of the decoder reads one piece and writes the next one: it reads BOS first and writes EOS last.
    weights: float32 by kind, "memory" (layers, h, T, S), "encoder" (layers, h, S, S) and "decoder" (layers, h, T, T),
    as far as the model has them.
    """

    source: list[str]  # S pieces, EOS last
    target: list[str]  # T pieces that the decoder writes, EOS last
    read: list[str]  # T pieces that the decoder reads, BOS first
    weights: dict[str, np.ndarray]

    def queries(self, kind: str) -> list[str]:
        """Return the pieces that attend."""
        return self.source if kind == "encoder" else self.target

    def keys(self, kind: str) -> list[str]:
        """Return the pieces that are attended to."""
        return self.read if kind == "decoder" else self.source

    def with_weights(self, weights: dict[str, np.ndarray]) -> "PairAttention":
        """Return this pair with weights by kind, cut from (layers, h, Q, K) with padding to the size of the pair."""
        sizes = {kind: (len(self.queries(kind)), len(self.keys(kind))) for kind in weights}
        return self._replace(
            weights={kind: weights[kind][:, :, :queries, :keys] for kind, (queries, keys) in sizes.items()}
        )


class AttentionReader:
    """Computes the attention of fixed sentence pairs, each a source and its target, with the weights as they are.

        AttentionReader(transformer, tokenizer, [("a dog", "ein Hund")])()[0].weights["memory"]

    marks: those of the languages of each pair, if the model is told them. Sides of more than LONGEST pieces are cut,
    with a warning. Raises ConfigError if there is no pair, or a blank side,
    and InputError for text that UTF-8 cannot express.
    """

    def __init__(
        self,
        transformer: keras.Model,
        tokenizer: Tokenizer,
        pairs: Iterable[tuple[str, str]],
        marks: Sequence[Marks] = (),
    ):
        pieces, pairs = tokenizer.pieces(), list(pairs)
        longest = min(LONGEST, transformer.model_config.position_limit or LONGEST)
        if not pairs:
            raise ConfigError("There are no sentence pairs to show the attention of: give at least one.")
        of_sides = marks, [Marks(first=of_pair.opening) for of_pair in marks]
        sides = [
            list(encoded_lines(tokenizer, list_of_lines(lines, name), longest, 1, name == "Target", of_side))
            for lines, name, of_side in zip(zip(*pairs, strict=True), ("Source", "Target"), of_sides, strict=True)
        ]
        for number, ids in enumerate(zip(*sides, strict=True), 1):
            if not all(ids):
                raise ConfigError(f"Sentence pair {number} has a blank side: give a source and its target.")
        self.source_ids, self.target_ids = map(padded, sides)
        texts = ([[pieces[number] for number in ids] for ids in side] for side in sides)
        self.pairs = [
            PairAttention(source, target, [pieces[BOS], *target[:-1]], {})
            for source, target in zip(*texts, strict=True)
        ]
        self.forced = ForcedDecoder(transformer)

    def __call__(self) -> list[PairAttention]:
        """Compute the attention of all pairs at once. Returns that of each, without padding."""
        forced = self.forced(self.source_ids, self.target_ids)
        of_blocks = {kind: list(map(as_float32, forced.weights_of(kind))) for kind in ATTENTIONS}
        weights = {kind: np.stack(each, axis=1) for kind, each in of_blocks.items() if each}
        return [
            pair.with_weights({kind: of_pairs[row] for kind, of_pairs in weights.items()})
            for row, pair in enumerate(self.pairs)
        ]


def as_float32(tensor) -> np.ndarray:
    return np.asarray(ops.convert_to_numpy(tensor), np.float32)


# Each measure takes weights (..., Q, K) to one number per query (..., up to Q).


def entropy(weights: np.ndarray) -> np.ndarray:
    """-sum w ln w, in nats: 0 if all weight is on one key, ln K if it is the same on all K keys."""
    return -np.sum(weights * np.log(np.where(weights > 0, weights, 1)), axis=-1)


def offset_weight(offset: int) -> Callable[[np.ndarray], np.ndarray]:
    """The weight of the key at the query's own position plus `offset`, of those queries that have such a key."""
    return lambda weights: np.diagonal(weights, offset, axis1=-2, axis2=-1)


def key_weight(position: int) -> Callable[[np.ndarray], np.ndarray]:
    """The weight of the key at `position`; -1 is the last one."""
    return lambda weights: weights[..., position]


ANYWHERE = {"entropy": entropy, "previous": offset_weight(-1), "same": offset_weight(0)}
TO_SOURCE = ANYWHERE | {"next": offset_weight(1), "end": key_weight(-1)}  # "end": the end of sentence
MEASURES = {
    "memory": TO_SOURCE,
    "encoder": TO_SOURCE,
    "decoder": ANYWHERE | {"begin": key_weight(0)},  # BOS; it never attends to a later piece, and never reads EOS
}


def head_measures(pairs: Sequence[PairAttention]) -> dict[str, float]:
    """Return the mean of each measure of each head over all queries of all pairs: "encoder_1_head_2/entropy".

    Blocks and heads count from 1. A dead head spreads its weight evenly: its entropy is near the logarithm of the
    number of keys. A head that copies has nearly all of its weight on one position: "previous", "same" or "next" is
    near 1. Query t of the decoder reads piece t - 1 and writes piece t; its "same" position is what it reads.
    """
    means = {}
    for kind in pairs[0].weights:
        for name, measure in MEASURES[kind].items():
            per_query = np.concatenate([measure(pair.weights[kind]) for pair in pairs], axis=-1)  # (layers, h, queries)
            for (block, head), value in np.ndenumerate(per_query.mean(axis=-1, dtype=np.float64)):
                means[f"{kind}_{block + 1}_head_{head + 1}/{name}"] = float(value)
    return means
