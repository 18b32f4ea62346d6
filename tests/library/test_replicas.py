"""The replicas of a strategy of TensorFlow, and the one replica of everything else."""

import types

import keras
import pytest
import tensorflow as tf

from keras_transformer.ground.replicas import number_of_replica, replica_count, sum_over_replicas


@pytest.fixture
def strategy(monkeypatch):
    """A strategy of three replicas, seen from its third one: all have the same values."""
    context = types.SimpleNamespace(
        num_replicas_in_sync=3,
        replica_id_in_sync_group=2,
        all_reduce=lambda kind, value: 3 * value if kind == tf.distribute.ReduceOp.SUM else value,
    )
    monkeypatch.setattr(tf.distribute, "get_replica_context", lambda: context)
    monkeypatch.setattr(tf.distribute, "get_strategy", lambda: context)
    return context


def of_all(value=5.0):
    return replica_count(), number_of_replica(), float(sum_over_replicas(value))


def test_a_replica_knows_its_number_their_count_and_the_sum_of_all(strategy):
    assert of_all() == (3, 2, 15.0)
    strategy.num_replicas_in_sync = 1
    assert sum_over_replicas(5.0) == 5.0


def test_between_replicas_and_without_a_strategy_there_is_nothing_to_sum(strategy, monkeypatch):
    monkeypatch.setattr(tf.distribute, "get_replica_context", lambda: None)  # while Keras builds the model
    assert of_all() == (3, 0, 5.0)
    monkeypatch.undo()
    assert of_all() == (1, 0, 5.0)


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_other_backends_have_one_replica(strategy, backend, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: backend)
    assert of_all() == (1, 0, 5.0)
