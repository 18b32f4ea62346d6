"""Laws of packing: every pair has one place, no row is overfull, little stays empty, epochs are packed ahead."""

import concurrent.futures
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor

import numpy as np
import pytest

from tests.support.places import MULTI30K, ROOT
from tests.support.training import TRAINING, copying_pairs
from train.config.run import load_config
from train.config.training import RowLengths
from train.data.batches import PackedBatches
from train.data.encoding import EncodedPairs, Sentences, encode_corpus
from train.data.epochs import Epochs
from train.data.packing import Packing, offsets_of, pack
from train.data.prepare import load_corpus


@pytest.fixture(scope="module")
def lengths():
    """Source and target lengths of 500 pairs, from 1 to 31 and independent of each other."""
    return np.random.default_rng(0).integers(1, 32, (2, 500))


def rows_of(lengths, seed, source_row_length=40):
    packing = pack(*lengths, RowLengths(source_row_length, 40), np.random.default_rng(seed))
    return np.split(packing.pairs, packing.row_offsets[1:-1])


@pytest.mark.parametrize("source_row_length", [40, 33])
def test_every_pair_has_one_place_and_no_row_is_overfull(lengths, source_row_length):
    rows = rows_of(lengths, 0, source_row_length)
    assert sorted(np.concatenate(rows)) == list(range(500))
    assert all(len(row) and lengths[0][row].sum() <= source_row_length for row in rows)
    assert all(lengths[1][row].sum() <= 40 for row in rows)


@pytest.mark.parametrize("pairs", [1, 2, 3])
def test_the_smallest_corpora_are_packed(pairs):
    assert sorted(np.concatenate(rows_of(np.full((2, pairs), 30), 0))) == list(range(pairs))


def test_pairs_as_long_as_a_row_get_one_row_each():
    packing = pack(np.full(7, 40), np.full(7, 40), RowLengths(40, 40), np.random.default_rng(0))
    assert packing.row_offsets.tolist() == list(range(8))


def test_halves_fill_rows_without_a_gap():
    packing = pack(np.full(8, 20), np.full(8, 20), RowLengths(40, 40), np.random.default_rng(0))
    assert packing.num_rows == 4


def test_the_place_of_a_row_does_not_depend_on_the_lengths_of_its_pairs(lengths):
    epochs = [rows_of(lengths, epoch) for epoch in range(20)]
    pairs = np.array([len(row) for rows in epochs for row in rows])
    place = np.concatenate([np.arange(len(rows)) for rows in epochs])
    assert abs(np.corrcoef(pairs, place)[0, 1]) < 0.1


def test_rows_are_taken_in_the_order_asked_for():
    packing = Packing(np.array([5, 6, 7, 8, 9]), np.array([0, 2, 3, 5]))
    taken = packing.take(np.array([2, 0, 2]))
    assert taken.pairs.tolist() == [8, 9, 5, 6, 8, 9]
    assert taken.row_offsets.tolist() == [0, 2, 4, 6]


# padding


def test_less_than_two_per_cent_of_the_positions_stay_empty_for_lengths_like_those_of_multi30k():
    rng = np.random.default_rng(0)
    source = np.clip(np.exp(rng.normal(2.75, 0.3, 20_000)), 4, 51).astype(int)  # mean 16.4 tokens, as at 6,000 pieces
    target = np.clip(source * np.exp(rng.normal(0.0, 0.2, 20_000)), 4, 59).astype(int)
    source_row_length = -(-128 * source.sum() // target.sum())
    packing = pack(source, target, RowLengths(source_row_length, 128), np.random.default_rng(1))
    assert 1 - (source.sum() + target.sum()) / (packing.num_rows * (source_row_length + 128)) < 0.02


@pytest.mark.nightly
@pytest.mark.skipif(MULTI30K is None, reason="there is no Multi30k: make multi30k")
@pytest.mark.parametrize("name", ["multi30k", "multi30k/de_en", "multi30k/en_fr"])
def test_padding_of_the_multi30k_configurations_is_below_two_per_cent(tmp_path, monkeypatch, name):
    from keras_transformer.pieces.tokenizer import Tokenizer, train_tokenizer

    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "multi30k").symlink_to(MULTI30K)
    monkeypatch.chdir(tmp_path)
    config = load_config(ROOT / f"configs/{name}.toml")
    split, training = load_corpus(config.data).train, config.training
    train_tokenizer((text for pair in split for text in pair), tmp_path / "model", config.tokenizer.vocab_size)
    pairs = encode_corpus(split, Tokenizer(tmp_path / "model"), training.row_lengths)
    assert len(pairs) == 29_000
    batches = PackedBatches(pairs, training.tokens_per_batch, training.row_lengths, training.seed)
    assert batches.padding.total < 0.02


# epochs in the background


def pairs_of(lengths):
    sides = [Sentences(np.full(side.sum(), 7, np.uint16), offsets_of(side)) for side in lengths]
    return EncodedPairs(*sides, {})


def test_an_epoch_that_is_waited_for_is_given_up_and_can_be_had_again(lengths):
    """A process that was told to stop ends then, and does not wait for minutes, nor does the thread of tf.data."""
    begun, hurries = threading.Event(), threading.Event()

    def redraw(pairs, rng, gives_up):
        begun.set()
        deadline = time.monotonic() + 60
        while not hurries.is_set() and time.monotonic() < deadline:
            if gives_up():
                raise CancelledError
            time.sleep(0.01)
        return pairs

    epochs = Epochs(pairs_of(lengths), RowLengths(40, 40), 1, redraw)
    with ThreadPoolExecutor(1) as reader:
        waiting = reader.submit(epochs.epoch, 1)
        assert begun.wait(timeout=10)
        epochs.prepare_ahead(2)
        epochs.give_up()
        with pytest.raises(CancelledError):
            waiting.result(timeout=10)
    hurries.set()
    assert epochs.epoch(1).packing.num_rows > 0 and list(epochs._epochs) == [1]


def test_an_error_in_the_background_is_raised_where_the_epoch_is_used(lengths):
    epochs = Epochs(pairs_of(lengths), RowLengths(40, 40), 1, lambda *_: 1 // 0)
    epochs.prepare_ahead(1)
    with pytest.raises(ZeroDivisionError):
        epochs.epoch(1)


def test_epochs_asked_for_in_any_order_are_the_same(lengths):
    pairs = pairs_of(lengths)
    forward, back = Epochs(pairs, RowLengths(40, 40), seed=(1, 2)), Epochs(pairs, RowLengths(40, 40), seed=(1, 2))
    found = {epoch: forward.epoch(epoch).packing.pairs for epoch in (0, 1, 2, 3)}
    assert list(forward._epochs) == [3]  # what is over is not kept
    for epoch in (3, 0, 2, 2, 1):
        np.testing.assert_array_equal(back.epoch(epoch).packing.pairs, found[epoch])
    assert (found[0] != found[1]).any() and (found[1] != found[2]).any()


def test_an_epoch_that_is_in_use_stays_when_the_next_one_is_given_up():
    epochs = Epochs(copying_pairs(), TRAINING.row_lengths, 1)
    first = epochs.epoch(0)
    epochs.give_up()
    assert epochs.epoch(0) is first


def test_an_epoch_that_was_prepared_ahead_is_not_prepared_again():
    prepared = []
    epochs = Epochs(copying_pairs(), TRAINING.row_lengths, 1, lambda pairs, rng, gives_up: prepared.append(1) or pairs)
    epochs.prepare_ahead(1)
    for number in (0, 0, 1):
        epochs.epoch(number)
    assert len(prepared) == 2


def test_an_epoch_that_was_given_up_while_it_was_prepared_is_prepared_anew():
    begun, prepared = threading.Event(), []

    def redraw(pairs, rng, gives_up):
        begun.set()
        while not prepared and not gives_up():
            pass
        if gives_up():
            prepared.append("given up")
            raise concurrent.futures.CancelledError
        return pairs

    epochs = Epochs(copying_pairs(), TRAINING.row_lengths, 1, redraw)
    epochs.prepare_ahead(1)
    assert begun.wait(20)
    epochs.give_up()
    assert len(epochs.epoch(1).packing.pairs) and prepared == ["given up"]
