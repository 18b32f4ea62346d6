"""What is said before the first step."""

import collections
import types

import numpy as np
import pytest

from keras_transformer.config import preset
from train.config import RowLengths
from train.data.batches import PackedBatches, ShardedBatches
from train.data.corpus import Corpus, Split
from train.data.encoding import EncodedPairs, EncodedShards, Sentences, pair_keys
from train.evaluation import preflight
from train.evaluation.cost import parameter_count


def found(train, validation, test=None):
    """A Data of these texts, with as much of it as the lines on the corpus read; each list of `train` is a shard."""
    splits = (pairs and Split("x", lambda pairs=pairs: iter(pairs)) for pairs in (validation, test))
    shards = [EncodedPairs(None, None, collections.Counter(), pair_keys(pairs)) for pairs in train]
    return types.SimpleNamespace(
        corpus=Corpus(None, *splits, "en", "de"), train=types.SimpleNamespace(shards=shards)
    )  # fmt: skip


@pytest.mark.parametrize("cut", [0, 1, 2, 4])
def test_duplicates_and_overlap_are_counted_by_pair_over_all_shards(cut):
    train = [("a", "b"), ("a", "b"), ("a", "c"), ("d", "e")]
    lines = list(preflight.corpus_lines(found([train[:cut], train[cut:]], [("a", "c"), ("x", "y")], [("d", "e")])))
    assert lines[0].startswith("duplicates: 1 of 4 training pairs")
    assert lines[1].startswith("overlap: 1 of 2 validation pairs") and "flatter" in lines[1]
    assert lines[2].startswith("overlap: 1 of 1 test pairs")


def test_no_overlap_is_said_without_a_warning():
    _, line = preflight.corpus_lines(found([[("a", "b")]], [("b", "a")]))
    assert line == "overlap: 0 of 1 validation pairs are training pairs too"


def packed(source_length, target_length, *row_lengths):
    """A Data of 100 pairs of these lengths, with as much of it as the lines on rows read."""
    sides = (Sentences.of([[7] * length] * 100, np.uint16) for length in (source_length, target_length))
    train = EncodedShards([EncodedPairs(*sides, collections.Counter())])
    batches = ShardedBatches([PackedBatches(train.shards[0], 400, RowLengths(*row_lengths), seed=1)])
    return types.SimpleNamespace(train=train, batches=batches)


def test_rows_whose_lengths_do_not_fit_the_sides_are_named_with_those_that_do():
    (line,) = preflight.row_lines(packed(5, 10, 40, 40))
    assert "50.0% of the source side and 0.0% of the target side" in line
    assert "training.source_row_length = 20 with training.row_length = 40" in line
    assert not list(preflight.row_lines(packed(5, 10, 20, 40)))
    assert not list(preflight.row_lines(packed(10, 10, 40, 40)))


def test_the_mean_length_is_that_of_all_shards():
    data = packed(5, 10, 40, 40)
    data.train = EncodedShards([*data.train.shards, *packed(7, 10, 40, 40).train.shards])
    source, target = preflight.length_lines(data)
    assert source.startswith("source tokens a sentence: mean 6.0;") and "mean 10.0" in target


def test_a_pair_is_its_two_sides_not_their_concatenation():
    keys = pair_keys([("ab", "c"), ("a", "bc"), ("ab", "c")])
    assert keys[0] == keys[2] != keys[1]
    assert keys.dtype == np.uint64


def test_memory_is_weights_four_times_over_and_what_a_batch_needs():
    settings = preset("tiny").replace(vocab_size=300)
    weights = 16 * parameter_count(settings)

    def estimate(rows, parts=1):
        return preflight.memory_bytes(
            settings, types.SimpleNamespace(rows_per_batch=rows, row_lengths=RowLengths(64, 64)), parts
        )

    assert estimate(0) == weights
    assert estimate(8) - weights == 2 * (estimate(4) - weights)
    assert estimate(8, parts=2) == estimate(4)


def test_the_speed_of_a_matrix_product_is_a_plausible_number_of_flops():
    assert 1e6 < preflight.matrix_flops(size=64, seconds=0.01) < 1e16
