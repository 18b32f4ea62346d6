"""`make check-learning`: what it breaks on purpose is really broken, and its bounds are what decides."""

import json
import pathlib

import pytest
import tensorflow as tf

from keras_transformer.runs.run_folder import RunFolder
from tests.check_learning import BOUNDS, BREAKS, app, is_right, last_values, smoothing_counts_padding
from tests.support.commands import assert_one_sentence, invoke
from tests.support.training import BATCHES, tensors, training_model
from train.validation import validation

pytestmark = pytest.mark.release


def loss():
    """Of the first batch, by a model with the same weights every time."""
    sums, _ = training_model().sums_and_gradients(tensors(BATCHES.batch(0)), tf.constant(0), tf.constant(0))
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


@pytest.fixture
def trained(monkeypatch):
    """The configurations that `main` trains with, each of which writes the values of `records` instead."""

    def run(config):
        configs.append(config)
        path = pathlib.Path(config.run_folder)
        (path / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))

    configs, records = [], []
    monkeypatch.setattr("train.run.run", run)
    return configs, records


@pytest.mark.parametrize(("loss", "bleu", "code"), [(3.5, 20.0, 0), (3.7, 20.0, 1), (3.5, 9.0, 1), (None, 20.0, 1)])
def test_the_exit_code_says_whether_both_values_are_right(trained, loss, bleu, code):
    trained[1].append({"validation/loss": loss, "validation/bleu": bleu})
    assert invoke(app, "--seed", "7").exit_code == code
    assert trained[0][0].training.seed == 7


def test_a_learning_rate_that_is_broken_is_ten_times_as_high(trained):
    configs, records = trained
    records.append({"validation/loss": 6.0, "validation/bleu": 0.0})
    assert [invoke(app, *options).exit_code for options in ((), ("--broken", "learning_rate"))] == [1, 1]
    right, broken = (config.training.learning_rate_factor for config in configs)
    assert broken == 10 * right
    assert configs[0].training.model_copy(update={"learning_rate_factor": broken}) == configs[1].training


def test_a_folder_with_a_run_is_refused(trained, tmp_path):
    """It would not be trained again, and what other code came to would be judged."""
    folder = RunFolder(tmp_path)
    folder.checkpoints.mkdir()
    (folder.checkpoints / "step-00000900.npz").touch()
    assert_one_sentence(invoke(app, "--folder", tmp_path), "which has a run already")
    assert not trained[0]


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
