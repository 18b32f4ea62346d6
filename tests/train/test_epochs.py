"""Epochs are prepared once, in time for their first batch, and no longer than they are needed."""

import concurrent.futures
import threading

from tests.support.training import TRAINING, copying_pairs
from train.data.batches import PackedBatches
from train.data.epochs import Epochs


def test_an_epoch_that_is_in_use_stays_when_the_next_one_is_given_up():
    epochs = Epochs(copying_pairs(), TRAINING.row_lengths, 1)
    first = epochs.epoch(0)
    epochs.give_up()
    assert epochs.epoch(0) is first


def test_the_next_epoch_is_prepared_ahead_if_the_last_batch_is_of_it(monkeypatch):
    batches, numbers = PackedBatches(copying_pairs(), TRAINING.tokens_per_batch, TRAINING.row_lengths, 1), []
    monkeypatch.setattr(batches._epochs, "prepare_ahead", numbers.append)
    end = batches.steps_per_epoch
    batches.prepare_next(end - 1, last=end - 1)
    assert numbers == []
    batches.prepare_next(end - 1, last=end)
    assert numbers == [1]


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
