"""Laws that hold for every optimizer that a configuration may name."""

import functools
import pathlib
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support.models import as_numpy, assert_close
from tests.support.optimizers import (
    OPTIONS,
    SHAPES,
    VECTORS,
    arrays,
    built,
    gradients,
    training_of,
    updated,
    updated_on_replicas,
)
from tests.support.processes import fork_python
from tests.support.training import BATCHES, assert_stopped_ends_as_uninterrupted, tensors, training_model, weights_of
from train.loop.checkpoints import Checkpoints, named_variables
from train.loop.progress import Progress
from train.step.optimizer import slots_per_weight
from train.step.optimizer_choice import OPTIMIZERS, check_optimizer

every_optimizer = pytest.mark.parametrize("name", OPTIONS)
AVERAGED = [name for name in OPTIONS if name != "schedule_free"]  # with a moving average beside the weights
REPLICATED = [*OPTIONS, "half"]  # the last one is schedule-free in float16


def test_the_table_has_every_key():
    assert set(OPTIMIZERS) <= set(OPTIONS)
    for name in OPTIONS:
        check_optimizer(training_of(name))


@every_optimizer
def test_compiled_updates_are_the_eager_ones(name):
    for one, other in zip(updated(name, xla=True), updated(name), strict=True):
        assert_close(one, other)


@every_optimizer
def test_a_rate_of_0_changes_no_weight(name):
    variables, optimizer = built(name)
    before = arrays(variables)
    optimizer._learning_rate = lambda: 0.0
    for step in range(3):
        optimizer.apply(gradients(step))
    for weight, value in zip(variables, before, strict=True):
        np.testing.assert_array_equal(as_numpy(weight), value)


@every_optimizer
def test_every_update_moves_every_weight_against_its_gradient(name):
    variables, optimizer = built(name, {})
    before = arrays(variables)
    optimizer.apply(gradients(0))
    for weight, value, gradient in zip(variables, before, gradients(0), strict=True):
        assert ((as_numpy(weight) - value) * gradient).sum() < 0


@every_optimizer
def test_weight_decay_takes_a_share_of_matrices_and_nothing_of_vectors(name):
    """Gradients are so small that what is left of an update is the decay, or else the same with and without it."""
    plain, decayed = (updated(name, steps=1, options=options) for options in ({}, {"weight_decay": 0.5}))
    start, rate = arrays(built(name)[0]), 0.02 / 3
    without = updated(name, steps=1, options={"weight_decay": 0.0})
    for path, value, one, other, none in zip(SHAPES, start, plain, decayed, without, strict=False):
        expected = 0 if path in VECTORS else -rate * 0.5 * value
        scale = 1e-3 if name == "adafactor" else 1e-6  # whose step is relative to the weight, which has decayed
        assert_close(other - none, expected * np.ones_like(value), atol=scale)
        if OPTIMIZERS.get(name, (None, {}))[1] == {}:
            assert_close(one, none, atol=0, rtol=0)


@pytest.mark.parametrize("name", AVERAGED)
def test_the_moving_average_follows_its_equation(name):
    variables, optimizer = built(name, ema_decay=0.15)
    expected = arrays(variables)
    for step, decay in enumerate([0.1, 0.15, 0.15]):  # (1 + t) / (10 + t) is 0.1, 0.18, 0.25
        optimizer.apply(gradients(step))
        weights = arrays(variables)
        expected = [decay * one + (1 - decay) * weight for one, weight in zip(expected, weights, strict=True)]
        for average, value in zip(optimizer.averages, expected, strict=True):
            assert_close(average, value, atol=1e-6)


@every_optimizer
def test_float16_skips_an_update_that_overflows_and_takes_others_as_float32_does(name):
    half, optimizer = built(name, precision="mixed_float16")
    optimizer.apply([optimizer.scale_loss(gradient) for gradient in gradients(0)])
    before = arrays([*half, *optimizer.inner_optimizer.variables])
    optimizer.apply([np.full_like(gradient, np.inf) for gradient in gradients(1)])
    for found, value in zip([*half, *optimizer.inner_optimizer.variables], before, strict=True):
        np.testing.assert_array_equal(np.array(found.value), value)
    for one, other in zip(before, updated(name, steps=1), strict=True):
        assert_close(one, other)


@every_optimizer
def test_a_checkpoint_has_everything_under_a_name_of_its_own_in_every_process(name, tmp_path):
    keras.Variable(0.0), keras.Variable(0.0)  # which Keras numbers
    (variables, optimizer), (others, other) = built(name), built(name)
    model, second = (keras.Model() for _ in range(2))
    for step in range(2):
        optimizer.apply(gradients(step))
    named = named_variables(model, optimizer)
    assert list(named) == list(named_variables(second, other))
    assert [id(variable) for variable in named.values()] == [id(variable) for variable in optimizer.variables]
    Checkpoints(tmp_path).save(model, optimizer, Progress(2))
    Checkpoints(tmp_path).restore_latest(second, other)
    for weight, value in zip(others, arrays(variables), strict=True):
        weight.assign(value)
    for each in (optimizer, other):
        each.apply(gradients(2))
    for one, value in zip(arrays([*variables, *optimizer.variables]), arrays([*others, *other.variables]), strict=True):
        np.testing.assert_array_equal(one, value)


def test_names_that_run_folders_have_stay():
    _, optimizer = built("adam", ema_decay=0.9)
    names = [*named_variables(keras.Model(), optimizer)]
    assert names[:3] == [
        "optimizer/adam/iteration",
        "optimizer/adam/embedding_matrix_momentum",
        "optimizer/adam/embedding_matrix_velocity",
    ]
    assert names[-1] == "optimizer/adam/norm_gamma_average"


SLOTS = {"adam": 2, "adamw": 2, "schedule_free": 2, "muon": 2, "lion": 1, "adafactor": 0.01, "Nadam": 2, "SGD": 1}


@pytest.mark.parametrize("name", SLOTS)
def test_memory_is_counted_from_what_the_optimizer_keeps(name):
    assert slots_per_weight(training_of(name)) == pytest.approx(SLOTS[name], abs=0.01)
    if name in AVERAGED:
        assert slots_per_weight(training_of(name, ema_decay=0.9)) == pytest.approx(SLOTS[name] + 1, abs=0.01)


# several replicas


def write_updates(path):
    """Update on two replicas of this process with every optimizer."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    found = {name: on_replicas(strategy, name) for name in REPLICATED}
    np.savez(path, **{f"{name}/{place}": array for name, own in found.items() for place, array in enumerate(own)})


def on_replicas(strategy, name):
    if name == "half":
        return updated_on_replicas(strategy, "schedule_free", precision="mixed_float16")
    return updated_on_replicas(strategy, name)


@pytest.fixture(scope="module")
def on_two_replicas(tmp_path_factory):
    path = tmp_path_factory.mktemp("replicas") / "found.npz"
    run = fork_python("-m", "tests.train.test_optimizers_by_key", path)
    assert run.returncode == 0, run.stderr[-3000:]
    with np.load(path) as file:
        return dict(file)


@pytest.mark.slow
@pytest.mark.parametrize("name", REPLICATED)
def test_two_replicas_update_as_one_does(name, on_two_replicas):
    expected = on_replicas(tf.distribute.get_strategy(), name)
    found = [on_two_replicas[f"{name}/{place}"] for place in range(len(expected))]
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, atol=1e-6)


# the training step


def model_with(name, **changes):
    rate = {"schedule": "warmup", "learning_rate": 0.01, "warmup_steps": 2}
    return training_model(optimizer=name, optimizer_options=OPTIONS[name], **rate, **changes)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [*OPTIMIZERS, "Nadam"])
def test_a_training_that_was_stopped_ends_as_one_that_was_not_and_leaves_frozen_layers_alone(name, tmp_path):
    model = model_with(name, dropout=0.1, frozen=["embedding"])
    frozen = as_numpy(model.get_layer("embedding").weights[0])
    assert_stopped_ends_as_uninterrupted(model, tmp_path)
    np.testing.assert_array_equal(as_numpy(model.get_layer("embedding").weights[0]), frozen)


@functools.cache
def sums_of_parts(parts):
    """Sums and gradients of a batch that is computed in so many parts, as those of a step are."""
    model = training_model(micro_batches=parts)
    found = [
        model.sums_and_gradients(part, tf.constant(0), tf.constant(0))
        for part in model.split(tensors(BATCHES.batch(0)))
    ]
    return tf.nest.map_structure(lambda *values: tf.add_n(values), *found)


@pytest.mark.slow
@every_optimizer
def test_two_micro_batches_make_the_update_of_one(name):
    found = []
    for parts in (1, 2):
        model = model_with(name)
        model.update(*sums_of_parts(parts))
        found.append(weights_of(model))
    for one, other in zip(*found, strict=True):
        assert_close(one, other, atol=1e-4)


if __name__ == "__main__":
    write_updates(pathlib.Path(sys.argv[1]))
