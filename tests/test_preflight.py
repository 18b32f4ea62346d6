"""What is said before the first step."""

import types

import numpy as np

from keras_transformer.config import preset
from keras_transformer.model import parameter_count
from train import preflight
from train.corpus import Corpus
from train.sources.split import Split


def corpus(train, validation, test=None):
    splits = (pairs and Split("x", lambda pairs=pairs: iter(pairs)) for pairs in (train, validation, test))
    return Corpus(*splits, "en", "de")


def test_duplicates_and_overlap_are_counted_by_pair():
    train = [("a", "b"), ("a", "b"), ("a", "c"), ("a b", "")]
    lines = list(preflight.corpus_lines(corpus([*train[:3], ("d", "e")], [("a", "c"), ("x", "y")], [("d", "e")])))
    assert lines[0].startswith("duplicates: 1 of 4 training pairs")
    assert lines[1].startswith("overlap: 1 of 2 validation pairs") and "flatter" in lines[1]
    assert lines[2].startswith("overlap: 1 of 1 test pairs")


def test_no_overlap_is_said_without_a_warning():
    _, line = preflight.corpus_lines(corpus([("a", "b")], [("b", "a")]))
    assert line == "overlap: 0 of 1 validation pairs are training pairs too"


def test_a_pair_is_its_two_sides_not_their_concatenation():
    keys = preflight.pair_keys([("ab", "c"), ("a", "bc"), ("ab", "c")])
    assert keys[0] == keys[2] != keys[1]
    assert keys.dtype == np.uint64


def test_memory_is_weights_four_times_over_and_what_a_batch_needs():
    settings = preset("tiny").replace(vocab_size=300)
    weights = 16 * parameter_count(settings)

    def estimate(rows, parts=1):
        return preflight.memory_bytes(settings, types.SimpleNamespace(rows_per_batch=rows, row_length=64), parts)

    assert estimate(0) == weights
    assert estimate(8) - weights == 2 * (estimate(4) - weights)
    assert estimate(8, parts=2) == estimate(4)


def test_the_speed_of_a_matrix_product_is_a_plausible_number_of_flops():
    assert 1e6 < preflight.matrix_flops(size=64, seconds=0.01) < 1e16
