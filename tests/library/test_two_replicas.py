"""Stock `fit` and `evaluate` under MirroredStrategy: two replicas with different numbers of tokens are as one.

The replicas are two logical CPUs of a child process, since a process cannot divide its CPU after TensorFlow's start.
"""

import functools

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.layers.dropout import Dropout
from keras_transformer.losses import LabelSmoothedCrossentropy, token_sums
from tests.support.models import assert_close
from tests.support.processes import fork_python
from tests.support.scripts import two_replicas

pytestmark = pytest.mark.release


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """run -> name -> value: "one" of this process, the others of a process with two logical CPUs."""
    path = tmp_path_factory.mktemp("two_replicas") / "results.npz"
    process = fork_python("-m", "tests.support.scripts.two_replicas", path)
    assert process.returncode == 0, process.stderr[-3000:]
    found = {"one": two_replicas.one_step(LabelSmoothedCrossentropy(), evaluate=True)}
    found["uneven_on_one"] = two_replicas.of_seven_rows()
    with np.load(path) as results:
        for name in results.files:
            run, _, value = name.partition("/")
            found.setdefault(run, {})[value] = results[name]
    return found


@functools.cache
def expected(real_rows=4):
    """token_sums of the whole batch, and the gradient of their ratio."""
    inputs, labels = tf.nest.map_structure(lambda ids: two_replicas.only(real_rows, ids), two_replicas.batch())
    model = two_replicas.compiled(loss=None)
    with tf.GradientTape() as tape:
        sums = token_sums(model(inputs, training=False), labels, inputs["target_segments"], smoothing=0.1)
        mean = sums.loss / sums.tokens
    gradients = tape.gradient(mean, model.trainable_variables)
    return sums, np.concatenate([np.ravel(tf.convert_to_tensor(gradient)) for gradient in gradients])


def test_the_replicas_of_the_example_hold_different_numbers_of_tokens():
    labels = two_replicas.batch()[1]
    assert [(labels[:2] != 0).sum(), (labels[2:] != 0).sum()] == [8, 4]


@pytest.mark.parametrize("run", ["one", "two"])
@pytest.mark.parametrize("log", ["evaluate/loss", "fit/loss"])
def test_the_loss_is_the_mean_over_all_real_tokens(run, log, runs):
    sums, _ = expected()
    assert_close(runs[run][log], sums.loss / sums.tokens, atol=0, rtol=1e-6)


@pytest.mark.parametrize("run", ["one", "two"])
def test_its_gradient_is_that_of_the_training_step(run, runs):
    assert_close(runs[run]["gradient"], expected()[1], atol=1e-6, rtol=0)


@pytest.mark.parametrize("run", ["one", "two"])
@pytest.mark.parametrize("stage", ["evaluate", "fit"])
def test_the_metrics_divide_once_by_all_real_tokens(run, stage, runs):
    sums, _ = expected()
    assert_close(runs[run][f"{stage}/perplexity"], np.exp(float(sums.nll / sums.tokens)), atol=0, rtol=2e-6)
    assert_close(runs[run][f"{stage}/accuracy"], float(sums.correct / sums.tokens), atol=1e-7)


def test_a_replica_that_holds_padding_alone_changes_nothing(runs):
    sums, gradient = expected(real_rows=2)
    assert_close(runs["half"]["fit/loss"], sums.loss / sums.tokens, atol=0, rtol=1e-6)
    assert_close(runs["half"]["gradient"], gradient, atol=1e-6, rtol=0)


@pytest.mark.parametrize("log", ["evaluate", "fit"])
def test_the_loss_of_rows_that_do_not_divide_evenly_is_that_of_one_replica(log, runs):
    assert_close(runs["uneven"][log], runs["uneven_on_one"][log], atol=0, rtol=1e-5)


def test_a_sum_is_the_sum_over_all_replicas(runs):
    sums, gradient = expected()
    assert_close(runs["sum"]["fit/loss"], sums.loss, atol=0, rtol=1e-6)
    assert_close(runs["sum"]["gradient"], float(sums.tokens) * gradient, atol=1e-5, rtol=1e-5)


def test_in_stock_keras_a_scalar_loss_trains_with_the_sum_of_the_replicas_gradients(runs):
    """What the docstring of LabelSmoothedCrossentropy warns of; once this fails, Keras has changed and so may it."""
    assert runs["scalar"]["fit/loss"] > 1.8 * runs["one"]["fit/loss"]
    assert np.linalg.norm(runs["scalar"]["gradient"]) > 1.5 * np.linalg.norm(runs["one"]["gradient"])


def test_each_replica_drops_other_elements_and_the_first_what_one_device_drops(runs):
    kept = runs["dropout"]["kept"]
    alone = Dropout(0.5, seed=1)(np.ones((2, two_replicas.PLACES)), training=True)
    np.testing.assert_array_equal(kept[:2], np.asarray(alone) != 0)
    assert 0.4 < (kept[:2] == kept[2:]).mean() < 0.6  # independent masks of rate 0.5 agree at half their places
