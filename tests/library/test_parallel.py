"""Batches that are translated at the same time: every item once, and no error is lost."""

import pytest
import tensorflow as tf

import keras_transformer.parallel
from keras_transformer.parallel import map_batches, searches_at_once

LENGTHS = {number: 1 + number % 3 for number in range(10)}


@pytest.fixture(params=[1, 3], autouse=True)
def workers(request, monkeypatch):
    """Every law holds for one thread and for several."""
    monkeypatch.setattr(keras_transformer.parallel, "searches_at_once", lambda: request.param)
    return request.param


def test_every_item_is_in_one_batch_and_no_batch_is_larger_than_asked():
    batches = []
    map_batches(batches.append, LENGTHS, batch_size=2)
    assert sorted(number for batch in batches for number in batch) == list(LENGTHS)
    assert max(map(len, batches)) == 2


@pytest.mark.parametrize("wrong", [0, 9])
def test_an_error_in_one_batch_is_raised(wrong):
    def translate(batch):
        if wrong in batch:
            raise ArithmeticError(f"sentence {wrong}")

    with pytest.raises(ArithmeticError, match=f"sentence {wrong}"):
        map_batches(translate, LENGTHS, batch_size=2)


def test_of_nothing_there_is_no_batch():
    batches = []
    map_batches(batches.append, {}, batch_size=2)
    assert batches == []


def test_the_longest_are_translated_first(monkeypatch):
    """So that no thread has them left when all others are done."""
    monkeypatch.setattr(keras_transformer.parallel, "searches_at_once", lambda: 1)
    longest = []
    map_batches(lambda batch: longest.append(max(LENGTHS[number] for number in batch)), LENGTHS, batch_size=2)
    assert longest == [3, 3, 2, 1, 1]


def test_few_lines_are_shared_evenly_by_all_threads(workers):
    batches = []
    map_batches(batches.append, LENGTHS, batch_size=99)
    assert len(batches) == workers and max(map(len, batches)) == -(-len(LENGTHS) // workers)


@pytest.mark.parametrize(("accelerators", "at_once"), [([], 5), (["GPU:0"], 1)])
def test_a_core_has_a_batch_of_its_own_and_an_accelerator_one_alone(accelerators, at_once, monkeypatch):
    monkeypatch.setattr(keras_transformer.parallel, "processor_cores", lambda: 5)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: accelerators if kind == "GPU" else ["CPU:0"])
    assert searches_at_once() == at_once
