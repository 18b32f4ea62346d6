"""Sentence pairs that nobody wrote, as long and as repetitive as real ones, and what it costs to train on them."""

import numpy as np

from keras_transformer.tokens import EOS
from train.config import RowLengths
from train.data.batches import PackedBatches
from train.data.encoding import EncodedPairs, Sentences
from train.evaluation.cost import training_flops

MEAN_LENGTH = 28  # tokens of a sentence of WMT14 en-de with 37,000 pieces, end of sentence included
SPREAD = 0.6  # of the logarithm of a length
FIRST_PIECE = 4  # ids below are special
BATCHES = 8


def packed_batches(vocab_size, tokens, row_length, seed=0):
    """Batches of `tokens` source and `tokens` target positions in packed rows, as training packs them.

    Lengths are log-normal, a target about as long as its source; ids follow Zipf's law, so that an embedding's gradient
    meets the same rows again and again, as with words. Returns a list of Batch (see train/data/batches.py).
    """
    rows = tokens // row_length
    rng = np.random.default_rng(seed)
    pairs = made_up_pairs(rng, BATCHES * rows * row_length // MEAN_LENGTH, vocab_size, row_length)
    batches = PackedBatches(pairs, tokens, RowLengths(row_length, row_length), seed)
    return [batches.batch(step) for step in range(min(BATCHES, batches.steps_per_epoch))]


def made_up_pairs(rng, count, vocab_size, longest):
    source_lengths = rng.lognormal(np.log(MEAN_LENGTH) - SPREAD**2 / 2, SPREAD, count)
    target_lengths = source_lengths * rng.lognormal(0.0, 0.15, count)
    sides = (made_up_sentences(rng, lengths, vocab_size, longest) for lengths in (source_lengths, target_lengths))
    return EncodedPairs(*sides, {})


def made_up_sentences(rng, lengths, vocab_size, longest):
    lengths = np.clip(np.rint(lengths), 2, longest).astype(np.int64)
    ends = np.cumsum(lengths)
    frequencies = 1.0 / (np.arange(vocab_size - FIRST_PIECE) + 2.7)  # Zipf 1949, as Mandelbrot mended it
    ids = FIRST_PIECE + rng.choice(len(frequencies), ends[-1], p=frequencies / frequencies.sum())
    ids[ends - 1] = EOS
    return Sentences(ids.astype(np.int32), np.concatenate([[0], ends]))


def target_tokens(batch):
    """Positions of the targets that hold a token."""
    return int(np.count_nonzero(batch["target_segments"]))


def batch_flops(config, batch):
    """FLOPs that the model's training takes on a Batch: over real tokens, each attending within its own sentence."""
    return sum(training_flops(config, source, target) for source, target in pair_lengths(batch))


def pair_lengths(batch):
    """(source, target) lengths of all pairs of a Batch."""
    for source, target in zip(batch["source_segments"], batch["target_segments"], strict=True):
        count = target.max() + 1
        lengths = zip(np.bincount(source, minlength=count), np.bincount(target, minlength=count), strict=True)
        yield from ((int(s), int(t)) for s, t in list(lengths)[1:])  # segment 0 is padding
