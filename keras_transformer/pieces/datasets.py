"""From sentence pairs to a tf.data.Dataset that stock `model.fit` takes.

Importing this module imports no TensorFlow; `dataset_from_pairs` does, when it is called.
"""

import itertools
import logging
import operator
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_transformer.ground.errors import InputError
from keras_transformer.ground.tokens import BOS, EOS, PAD
from keras_transformer.pieces.batching import list_of_lines
from keras_transformer.pieces.normalization import is_blank
from keras_transformer.pieces.tokenizer import Tokenizer

if TYPE_CHECKING:
    import tensorflow as tf

EncodedPair = tuple[list[int], list[int]]  # the ids of a source and of its target

log = logging.getLogger("keras_transformer")


def dataset_from_pairs(
    pairs: Iterable[tuple[str, str]],
    tokenizer: Tokenizer,
    rows: int = 64,
    lengths: Sequence[int] = (16, 32, 64, 128),
    shuffle: bool = True,
    seed: int = 0,
    skip_unusable: bool = False,
) -> "tf.data.Dataset":
    """Batches of sentence pairs of about one length, one pair per row.

        pairs = [("two", "zwei"), ("two hundred", "zweihundert")]
        model.fit(dataset_from_pairs(pairs, tokenizer), epochs=10)

    An element is `(inputs, labels)`, int32 arrays of shape (rows, L), where L is the first of `lengths` that holds both
    sentences of each pair. The inputs of a Transformer, for one pair in a row of 6:

        source_ids      pieces, EOS          7 9 EOS PAD PAD PAD      source_segments  1 1 1 0 0 0
        target_ids      BOS, pieces          BOS 5 6 8 PAD PAD        target_segments  1 1 1 1 0 0
        labels          pieces, EOS          5 6 8 EOS PAD PAD

    There is one shape per length, so that a compiled model compiles once per length. The last batch of a length is
    filled with empty rows, which do not count in `LabelSmoothedCrossentropy`, `TokenAccuracy` and `Perplexity`.

    Args:
        pairs: (source, target) sentences; an array of two columns too.
        rows: rows per batch, of all replicas together.
        lengths: lengths of rows in tokens, EOS included, shortest first.
        shuffle: give the pairs another order in each epoch; `seed` decides which.
        skip_unusable: leave out pairs that are longer than the longest row or have a blank side, and log how many.

    Raises InputError for unusable pairs (unless they are skipped), for text that UTF-8 cannot express and if no pair is
    left, TypeError for pairs that are not two strings, ValueError for rows or lengths that make no sense.
    """
    lengths, (rows, seed) = _whole("lengths", lengths), _whole("rows and seed", (rows, seed))
    if rows < 1:
        raise ValueError(f"rows must be at least 1. Received: rows={rows}")
    if not lengths or lengths != sorted(set(lengths)) or lengths[0] < 2:
        raise ValueError(f"lengths must rise, from at least 2 tokens. Received: lengths={lengths}")
    encoded = _usable(_encoded(pairs, tokenizer), lengths[-1], skip_unusable)
    return _batches(encoded, rows, lengths, seed if shuffle else None)


def _whole(name: str, values: Iterable[int]) -> list[int]:
    """The values of an argument. Raises TypeError if they are not whole numbers in a list."""
    try:
        return [operator.index(value) for value in values]
    except TypeError:
        raise TypeError(f"{name} must be whole numbers, such as (16, 32). Received: {values!r:.60}") from None


def _encoded(pairs: Iterable[tuple[str, str]], tokenizer: Tokenizer) -> list[EncodedPair]:
    """The ids of both sentences of each pair, without BOS and EOS; [] for a blank sentence."""
    if isinstance(pairs, str | bytes | dict):
        raise TypeError(f"pairs must be (source, target) sentences. Received: a {type(pairs).__name__}")
    if not isinstance(tokenizer, Tokenizer):
        raise TypeError(f"tokenizer must be a keras_transformer.Tokenizer. Received: {tokenizer!r}")
    pairs = list(pairs)
    for number, pair in enumerate(pairs, 1):
        is_of_two = isinstance(pair, tuple | list | np.ndarray) and len(pair) == 2
        if not is_of_two or not all(isinstance(side, str) for side in pair):
            raise TypeError(f"pair {number} must be two strings, (source, target). Received: {pair!r}")
    sources, targets = (
        list_of_lines(("" if is_blank(pair[side]) else pair[side] for pair in pairs), name)
        for side, name in enumerate(("Source", "Target"))
    )
    return list(zip(tokenizer.encode_batch(sources), tokenizer.encode_target_batch(targets), strict=True))


def _usable(encoded: list[EncodedPair], longest: int, skip_unusable: bool) -> list[EncodedPair]:
    """The pairs that have text on both sides and fit into a row of `longest` tokens."""
    usable = [pair for pair in encoded if min(map(len, pair)) > 0 and max(map(len, pair)) < longest]
    blank = sum(min(map(len, pair)) == 0 for pair in encoded)
    too_long = len(encoded) - len(usable) - blank
    if blank or too_long:
        most = max(max(map(len, pair)) for pair in encoded) + 1
        problem = f"{blank} of {len(encoded)} pairs have a blank side and {too_long} are longer than {longest} tokens"
        if not skip_unusable:
            raise InputError(f"{problem} (the longest has {most}): extend lengths, or pass skip_unusable=True.")
        log.warning("%s (the longest has %d); they are left out", problem, most)
    if not usable:
        raise InputError(f"No pair is left to make a dataset of. Received: {len(encoded)} pairs.")
    return usable


def _batches(encoded: list[EncodedPair], rows: int, lengths: list[int], seed: int | None) -> "tf.data.Dataset":
    """The tf.data.Dataset of usable pairs; `seed` None keeps their order within a length."""
    import tensorflow as tf

    def ragged(sentences: Sequence[list[int]]) -> tf.RaggedTensor:
        ids = np.fromiter(itertools.chain.from_iterable(sentences), np.int32)
        return tf.RaggedTensor.from_row_lengths(ids, [len(sentence) for sentence in sentences])

    def row(source, target):
        inputs = {
            "source_ids": tf.concat([source, [EOS]], 0),
            "source_segments": tf.ones(tf.shape(source) + 1, tf.int32),
            "target_ids": tf.concat([[BOS], target], 0),
            "target_segments": tf.ones(tf.shape(target) + 1, tf.int32),
        }
        return inputs, tf.concat([target, [EOS]], 0)

    def length(inputs, labels):
        return tf.maximum(tf.shape(inputs["source_ids"])[0], tf.shape(labels)[0])

    def with_all_rows(ids):
        ids = tf.pad(ids, [[0, rows - tf.shape(ids)[0]], [0, 0]], constant_values=PAD)
        return tf.ensure_shape(ids, (rows, None))

    dataset = tf.data.Dataset.from_tensor_slices(tuple(map(ragged, zip(*encoded, strict=True))))
    if seed is not None:
        dataset = dataset.shuffle(len(encoded), seed=seed, reshuffle_each_iteration=True)
    dataset = dataset.map(row).bucket_by_sequence_length(
        length,
        bucket_boundaries=[longest + 1 for longest in lengths],
        bucket_batch_sizes=[rows] * (len(lengths) + 1),
        pad_to_bucket_boundary=True,
    )
    batches = dataset.map(lambda inputs, labels: tf.nest.map_structure(with_all_rows, (inputs, labels)))
    counts = np.bincount([np.searchsorted(lengths, max(map(len, pair)) + 1) for pair in encoded])
    return batches.apply(tf.data.experimental.assert_cardinality(sum(-(-int(count) // rows) for count in counts)))
