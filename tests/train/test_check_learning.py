"""`make check-learning`: what it breaks on purpose is really broken, and its bounds are what decides."""

import pytest
import tensorflow as tf

from tests.check_learning import BOUNDS, BREAKS, is_right, last_values, smoothing_counts_padding
from tests.support.training import BATCHES, tensors, training_model
from train.validation import validation

pytestmark = pytest.mark.release


def loss():
    """Of the first batch, by a model with the same weights every time."""
    sums, _, _ = training_model().sums_and_gradients(tensors(BATCHES.batch(0)), tf.constant(0), tf.constant(0))
    return float(sums.loss / sums.tokens)


@pytest.fixture(scope="module")
def whole():
    return loss()


def test_the_same_weights_have_the_same_loss(whole):
    assert loss() == whole


@pytest.mark.parametrize("name", sorted(set(BREAKS) - {"learning_rate"}))  # which is a change of the configuration
def test_a_break_changes_the_loss_and_ends(name, whole):
    with BREAKS[name]():
        assert abs(loss() - whole) > 1e-4
    assert loss() == whole


def test_smoothing_over_padding_is_in_the_loss_of_validation_too():
    before = validation.token_sums
    with BREAKS["padding"]():
        assert validation.token_sums is smoothing_counts_padding
    assert validation.token_sums is before


@pytest.mark.parametrize("place", [0, 1])
def test_a_value_out_of_its_bounds_is_wrong(place, capsys):
    name, (lowest, highest) = list(BOUNDS.items())[place]
    assert is_right(name, (lowest + highest) / 2)
    assert not any(is_right(name, value) for value in (lowest - 0.01, highest + 0.01, float("nan"), None))
    assert capsys.readouterr().out.count("WRONG") == 4


def test_the_last_validation_decides():
    records = [{"validation/loss": 9.0, "validation/bleu": 1.0}, {"train/loss": 5.0}]
    records += [{"validation/loss": 3.5, "validation/bleu": 20.0}, {"train/loss": 4.0}]
    assert last_values(records) == [3.5, 20.0]
