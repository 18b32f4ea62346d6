"""From encoded text to batches: what the seed decides."""

import types
from concurrent.futures import CancelledError

import numpy as np
import pytest

from keras_transformer.pieces.tokenizer import Tokenizer, train_tokenizer
from keras_transformer.text.placeholders import symbols_of
from tests.support.training import TRAINING, copying_pairs
from train.config.augmentation import AugmentationConfig
from train.config.training import RowLengths
from train.data import cache
from train.data.corpus import Split
from train.data.encoding import EncodedShards, encode_corpus
from train.data.prepare import MOST_CHECK_LINES, keep_check_lines, packed_batches, redraw_of
from train.workers.tf_config import ONLY_WORKER, Worker


@pytest.mark.parametrize("shards", [1, 2])
def test_the_order_of_the_text_is_that_of_the_seed(shards):
    train = EncodedShards([copying_pairs()] * shards)
    first, same, other = (
        packed_batches(train, TRAINING.model_copy(update={"seed": seed}), shards, ONLY_WORKER).batch(0)["labels"]
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()


def test_the_order_of_a_shard_is_that_of_its_number_whoever_reads_it():
    pairs, training = copying_pairs(), TRAINING
    both = packed_batches(EncodedShards([pairs, pairs]), training, 2, ONLY_WORKER).batch(0)["labels"]
    parts = [packed_batches(EncodedShards([pairs]), training, 2, Worker(n, 2)).batch(0)["labels"] for n in (0, 1)]
    np.testing.assert_array_equal(np.concatenate(parts), both)
    assert (parts[0] != parts[1]).any()


SENTENCES = [(f"see {name} in the house", f"sieh {name} im Haus") for name in ("Anna", "BMX", "Zoe", "Bo", "x3") * 3]
CHANGES = {
    "uppercase": ({"augment": AugmentationConfig(uppercase=1.0)}, {}),
    "joined": ({"augment": AugmentationConfig(joined=1.0)}, {}),
    "placeholders": ({}, {"placeholders": 1.0}),
    "bpe_dropout": ({"bpe_dropout": 0.9}, {}),
}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("prepare") / "tokenizer.model"
    train_tokenizer([text for pair in SENTENCES for text in pair], path, 330, symbols_of(3))
    return Tokenizer(path)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_an_epoch_that_is_not_needed_any_more_is_given_up(tokenizer, change):
    training, data = CHANGES[change]
    section = types.SimpleNamespace(**{"placeholders": 0.0} | data)
    redraw = redraw_of(TRAINING.model_copy(update=training), tokenizer, (), section)
    pairs = encode_corpus(Split("train", lambda: iter(SENTENCES)), tokenizer, RowLengths(90, 90))
    with pytest.raises(CancelledError):
        redraw(pairs, np.random.default_rng(2), lambda: True)


@pytest.mark.parametrize("change", CHANGES)
def test_a_pair_is_changed_if_it_then_fits_into_a_row_to_the_last_position(tokenizer, change):
    def redrawn(rows):
        training, data = ({**own} for own in CHANGES[change])
        lengths = {"row_length": rows.target, "source_row_length": rows.source}
        section = types.SimpleNamespace(**{"placeholders": 0.0} | data)
        redraw = redraw_of(TRAINING.model_copy(update=training | lengths), tokenizer, (), section)
        return sides(redraw(pairs, np.random.default_rng(2), lambda: False))

    def sides(pairs):
        return {side: [getattr(pairs, side)[n].tolist() for n in range(len(pairs))] for side in ("source", "target")}

    pairs = encode_corpus(Split("train", lambda: iter(SENTENCES)), tokenizer, RowLengths(90, 90))
    before, after = sides(pairs), redrawn(RowLengths(300, 300))
    longest = {side: max(map(len, after[side])) for side in after}
    assert redrawn(RowLengths(**longest)) == after
    for side in after:
        number = max(range(len(pairs)), key=lambda n: len(after[side][n]))
        if after[side][number] != before[side][number]:
            tight = redrawn(RowLengths(**longest | {side: longest[side] - 1}))
            assert len(tight[side][number]) < longest[side]
    assert before != after


def test_without_changes_an_epoch_is_the_text_as_it_was_encoded(tokenizer):
    off = types.SimpleNamespace(placeholders=0.0)
    assert redraw_of(TRAINING, tokenizer, (), off) is redraw_of(TRAINING, tokenizer, (), None) is None


def test_what_is_made_of_text_without_a_fingerprint_is_not_kept(tokenizer, tmp_path):
    split = Split("data.train", lambda: iter([("one", "one")]))
    with pytest.raises(TypeError, match="no fingerprint, so nothing that is made of it can be kept"):
        cache.CorpusCache(tmp_path).encoded(split, tokenizer, RowLengths(8, 8))
    assert list(tmp_path.iterdir()) == []


def test_a_run_keeps_the_first_validation_sentences_and_no_more(tmp_path):
    split = Split("data.validation", lambda: ((f"source {n}", "target") for n in range(MOST_CHECK_LINES + 2)))
    keep_check_lines(split, tmp_path / "lines")
    lines = (tmp_path / "lines").read_text(encoding="utf-8").splitlines()
    assert lines == [f"source {n}" for n in range(MOST_CHECK_LINES)]
