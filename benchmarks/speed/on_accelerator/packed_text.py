"""Synthetic sentence pairs with realistic lengths and word frequencies, and the FLOPs of training on them."""

from collections.abc import Iterator

import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.tokens import EOS
from train.config.training import RowLengths
from train.cost.cost import training_flops
from train.data.batches import PackedBatches
from train.data.encoding import EncodedPairs, Sentences

MEAN_LENGTH = 28  # tokens per sentence of WMT14 en-de with 37,000 pieces, end of sentence included
SPREAD = 0.6  # standard deviation of the logarithm of a length
FIRST_PIECE = 4  # ids below are special
BATCHES = 8
Batch = dict[str, np.ndarray]


def packed_batches(vocab_size: int, tokens: int, row_length: int, seed: int = 0) -> list[Batch]:
    """Batches of `tokens` source and `tokens` target positions in packed rows, as training packs them.

    Lengths are log-normal, and a target is about as long as its source. Ids follow Zipf's law, so that the gradient of
    the embedding hits some rows often, as with words. A Batch is described in train/data/batches.py.
    """
    rows = tokens // row_length
    rng = np.random.default_rng(seed)
    pairs = made_up_pairs(rng, BATCHES * rows * row_length // MEAN_LENGTH, vocab_size, row_length)
    batches = PackedBatches(pairs, tokens, RowLengths(row_length, row_length), seed)
    return [batches.batch(step) for step in range(min(BATCHES, batches.steps_per_epoch))]


def made_up_pairs(rng: np.random.Generator, count: int, vocab_size: int, longest: int) -> EncodedPairs:
    source_lengths = rng.lognormal(np.log(MEAN_LENGTH) - SPREAD**2 / 2, SPREAD, count)
    target_lengths = source_lengths * rng.lognormal(0.0, 0.15, count)
    sides = (made_up_sentences(rng, lengths, vocab_size, longest) for lengths in (source_lengths, target_lengths))
    return EncodedPairs(*sides, {})


def made_up_sentences(rng: np.random.Generator, lengths: np.ndarray, vocab_size: int, longest: int) -> Sentences:
    lengths = np.clip(np.rint(lengths), 2, longest).astype(np.int64)
    ends = np.cumsum(lengths)
    frequencies = 1.0 / (np.arange(vocab_size - FIRST_PIECE) + 2.7)  # the Zipf-Mandelbrot law
    ids = FIRST_PIECE + rng.choice(len(frequencies), ends[-1], p=frequencies / frequencies.sum())
    ids[ends - 1] = EOS
    return Sentences(ids.astype(np.int32), np.concatenate([[0], ends]))


def target_tokens(batch: Batch) -> int:
    """The number of target positions that hold a token."""
    return int(np.count_nonzero(batch["target_segments"]))


def batch_flops(config: TransformerConfig, batch: Batch) -> float:
    """Training FLOPs of a Batch: of real tokens only, each attending only to its own sentence."""
    return sum(training_flops(config, source, target) for source, target in pair_lengths(batch))


def pair_lengths(batch: Batch) -> Iterator[tuple[int, int]]:
    """The (source, target) lengths of all pairs of a Batch."""
    for source, target in zip(batch["source_segments"], batch["target_segments"], strict=True):
        count = target.max() + 1
        lengths = zip(np.bincount(source, minlength=count), np.bincount(target, minlength=count), strict=True)
        yield from ((int(s), int(t)) for s, t in list(lengths)[1:])  # segment 0 is padding
