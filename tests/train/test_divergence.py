"""Training that diverges stops and names the batch, or goes back and ends as if that batch had never existed."""

import functools
import logging
import math
import re

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.search.scores import NotFiniteError
from tests.support.events import read_events
from tests.support.runs import metrics_of, steps_of
from tests.support.training import (
    BATCHES,
    TINY,
    Reusable,
    assert_same_weights,
    checkpoint_names,
    fit_in,
    no_validation,
    training_model,
    weights_of,
)
from train.config.training import TrainingConfig
from train.data.batches import batch_number
from train.loop.checkpoints import Checkpoints, read_checkpoint
from train.loop.divergence import REWINDS, DivergenceCheck, DivergenceError, has_exploded
from train.loop.progress import Progress
from train.step.training_model import TrainingModel

POISON = TINY.vocab_size - 1  # a batch of nothing but this label is in no epoch of BATCHES
STEPS, EVERY = 11, 4  # steps of a run, and those of which there is a checkpoint
EARLY, LATER = 2, 6  # batches of which one is trained on before the first checkpoint, the other before the second


class Poisoned:
    """The stream BATCHES, with POISON for every label of the batches that `is_bad` names."""

    def __init__(self, is_bad):
        self.is_bad = is_bad

    def __getattr__(self, name):
        return getattr(BATCHES, name)

    def batch(self, number):
        batch = BATCHES.batch(number)
        return batch | {"labels": np.full_like(batch["labels"], POISON)} if self.is_bad(number) else batch


class Without(Poisoned):
    """The stream BATCHES as if it had never had the batches `left_out`."""

    def __init__(self, *left_out):
        self.left_out = left_out

    def batch(self, number):
        return [BATCHES.batch(n) for n in range(number + len(self.left_out) + 1) if n not in self.left_out][number]


@functools.cache
def diverging():
    """A TrainingModel whose loss and gradients are more by `harm`, a variable, on a batch of nothing but POISON."""
    model, harm = training_model(dropout=0.2), tf.Variable(0.0)

    def sums_and_gradients(batch, step, micro_batch):
        sums, gradients, guided = TrainingModel.sums_and_gradients(model, batch, step, micro_batch)
        added = tf.where(tf.reduce_all(batch["labels"] == POISON), harm, 0.0)
        gradients = [gradient + added for gradient in gradients]
        return sums._replace(loss=sums.loss + added * sums.tokens), gradients, guided

    model.sums_and_gradients = sums_and_gradients
    return Reusable(model), harm


RUN = {"steps": STEPS, "checkpoint_every": EVERY, "validate_every": LATER + 1}


def train(folder, batches, on_divergence="rewind", harm=math.nan, validate=no_validation, **changes):
    """`fit` in `folder` from where it stands. Returns the last weights and the Progress."""
    reusable, added = diverging()
    added.assign(harm)
    model = reusable.from_the_start()
    progress = fit_in(folder, model, batches, validate, on_divergence=on_divergence, **RUN | changes)
    return weights_of(model), progress


def assert_same_averages(checkpoints, others):
    """The weights of step 0, to which a run may go back, are in no average."""
    assert checkpoints.paths()[0].name == "step-00000000.npz"
    (average, paths), (expected, other_paths) = checkpoints.average(5), others.average(5)
    assert [path.name for path in paths] == [path.name for path in other_paths] and len(paths) == 3
    for name, value in expected.items():
        np.testing.assert_array_equal(average[name], value)


# what counts as divergence


@pytest.mark.parametrize(
    ("loss", "has_learned", "expected"),
    [(6.2, True, False), (6.3, True, True), (math.inf, True, True), (6.3, False, False), (100.0, False, False)],
)
def test_a_loss_above_twice_guessing_has_exploded_once_the_run_was_better_than_guessing(loss, has_learned, expected):
    assert 2 * math.log(TINY.vocab_size) == pytest.approx(6.27, abs=0.01)
    assert has_exploded(loss, TINY.vocab_size, has_learned) is expected


def check(progress, loss, norm=1.0, **training):
    DivergenceCheck(BATCHES, 23, TrainingConfig(**training))(progress, {"loss": loss, "gradient_norm": norm})


@pytest.mark.parametrize(("loss", "norm"), [(math.nan, 1.0), (1.0, math.inf), (7.0, 1.0)])
def test_the_error_names_the_step_its_batch_the_values_and_what_to_change(loss, norm):
    progress = Progress(step=41, skipped=[5])
    check(progress, 1.0)
    with pytest.raises(DivergenceError) as caught:
        check(progress, loss, norm)
    parts = f"loss of {loss:g} ", f"norm of {norm:g},", "training.learning_rate_factor", "training.warmup_steps"
    for part in ("Step 42, on batch 42 of the stream (counted from 0, of 4 rows)", *parts, '= "rewind"'):
        assert part in str(caught.value)


def test_a_run_that_starts_worse_than_guessing_continues_and_has_learned_only_below_it():
    progress = Progress()
    for loss, has_learned in ((50.0, False), (3.2, False), (3.1, True), (6.2, True)):  # log(23) is 3.135
        check(progress, loss)
        assert progress.has_learned is has_learned


def test_under_loss_scaling_an_overflowing_gradient_is_normal():
    check(Progress(), 1.0, math.inf, precision="mixed_float16")
    with pytest.raises(DivergenceError):
        check(Progress(), math.inf, precision="mixed_float16")


# which step trains on which batch


@pytest.mark.parametrize(
    ("skipped", "expected"),
    [([], [0, 1, 2, 3]), ([0], [1, 2, 3, 4]), ([2], [0, 1, 3, 4]), ([1, 2], [0, 3, 4, 5]), ([3, 1], [0, 2, 4, 5])],
)
def test_steps_go_through_the_stream_without_the_batches_left_out(skipped, expected):
    assert [batch_number(step, skipped) for step in range(4)] == expected


def test_leaving_out_the_batch_of_a_step_changes_no_step_before_it():
    skipped = []
    for step in (7, 3, 3, 9):
        before = [batch_number(earlier, skipped) for earlier in range(step)]
        skipped.append(batch_number(step, skipped))
        assert [batch_number(earlier, skipped) for earlier in range(step)] == before
    assert len(set(skipped)) == 4
    assert not {batch_number(step, skipped) for step in range(20)} & set(skipped)


# stop


@pytest.mark.slow
@pytest.mark.parametrize("harm", [math.nan, 1e6])
def test_stopping_keeps_the_last_checkpoint_and_the_metrics_of_every_earlier_step(tmp_path, harm):
    with pytest.raises(DivergenceError, match=rf"Step {LATER + 1}, on batch {LATER} "):
        train(tmp_path, Poisoned(lambda number: number == LATER), "stop", harm)
    assert checkpoint_names(tmp_path) == [f"step-{EVERY:08d}.npz"]
    assert steps_of(tmp_path) == list(range(1, LATER + 1))
    arrays = read_checkpoint(tmp_path / f"checkpoints/step-{EVERY:08d}.npz")
    assert all(np.isfinite(array).all() for name, array in arrays.items() if name != "progress")


# rewind


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """A function from batches to the last weights of a run, and its folder, in which the stream never had them."""
    found = {}

    def trained(*left_out):
        if left_out not in found:
            folder = tmp_path_factory.mktemp("calm")
            found[left_out] = train(folder, Without(*left_out), "stop")[0], folder
        return found[left_out]

    return trained


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bad", "harm"),
    [((LATER,), math.nan), ((LATER,), 1e6), ((EARLY,), math.nan), ((LATER, LATER + 1, LATER + 2), math.nan)],
)
def test_after_a_rewind_the_run_equals_one_without_that_batch_bit_for_bit(tmp_path, caplog, calm, bad, harm):
    with caplog.at_level(logging.INFO, logger="train"):
        weights, progress = train(tmp_path, Poisoned(lambda number: number in bad), harm=harm)
    expected, calm_folder = calm(*bad)
    assert_same_weights(weights, expected)
    assert progress.skipped == list(bad) and progress.step == STEPS
    lines = [
        [line["train/loss"] for line in metrics_of(run) if "train/loss" in line] for run in (tmp_path, calm_folder)
    ]
    assert lines[0] == lines[1]
    assert steps_of(tmp_path) == list(range(1, STEPS + 1))
    assert [step for step, _ in read_events(tmp_path / "tensorboard")["train/loss"]] == list(range(1, STEPS + 1))
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    back = EVERY if bad[0] > EVERY else 0
    assert [f"batches left out: {count}" in line for count, line in enumerate(warnings, start=1)] == [True] * len(bad)
    assert f"Step {bad[0] + 1}, on batch {bad[0]} " in warnings[0] and f"Going back to step {back} " in warnings[0]
    assert re.search(rf"trained {STEPS} steps in .+; batches left out: {len(bad)}\n", caplog.text)
    assert caplog.text.count("compiling the training step") == 1
    assert_same_averages(Checkpoints(tmp_path / "checkpoints"), Checkpoints(calm_folder / "checkpoints"))


# an update that leaves weights that are finite and have exploded


@functools.cache
def exploding():
    """A TrainingModel whose update multiplies the weights by 50 after a batch of nothing but POISON."""
    model = training_model(dropout=0.2)

    def step_of_replica(batch, stop_requests):
        step = TrainingModel.step_of_replica(model, batch, stop_requests)
        for weight in model.trainable_variables:
            weight.assign(tf.where(tf.reduce_all(batch["labels"] == POISON), 50.0 * weight, weight))
        return step

    model.step_of_replica = step_of_replica
    return Reusable(model)


def explode(folder, *bad, on_divergence="rewind", **changes):
    """`fit` in `folder` of a model that explodes after the update of each batch of `bad`, once it has learned."""
    model, batches = exploding().from_the_start(), Poisoned(lambda number: number in bad)
    progress = fit_in(folder, model, batches, on_divergence=on_divergence, **RUN | changes)
    return weights_of(model), progress


@pytest.mark.nightly
@pytest.mark.parametrize("due", ["checkpoint_every", "validate_every"])
def test_weights_that_exploded_are_in_no_checkpoint_and_not_validated(tmp_path, due):
    """The update after a checkpoint is due leaves them, of whose loss no later step has told yet."""
    settings = {"checkpoint_every": STEPS, "validate_every": STEPS, "keep_best": True} | {due: LATER + 1}
    with pytest.raises(DivergenceError, match=rf"Step {LATER + 1}, on batch {LATER} .* left weights with a loss of "):
        explode(tmp_path, LATER, on_divergence="stop", **settings)
    assert checkpoint_names(tmp_path) == [] and not any("validation/loss" in line for line in metrics_of(tmp_path))


@pytest.mark.slow
def test_a_run_whose_weights_explode_goes_back_to_those_before_and_leaves_out_the_batch_that_did_it(tmp_path):
    weights, progress = explode(tmp_path, LATER, checkpoint_every=LATER + 1)
    assert progress.skipped == [LATER] and progress.step == STEPS
    expected, _ = train(tmp_path / "calm", Without(LATER), "stop", checkpoint_every=LATER + 1)
    assert_same_weights(weights, expected)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("bad", "every", "rewinds"), [((8,), EVERY, 2), ((8, 9), EVERY, 3), ((7,), STEPS, 2)], ids=["one", "two", "early"]
)
def test_weights_that_explode_between_checkpoints_leave_out_the_batch_that_did_it(
    tmp_path, caplog, calm, bad, every, rewinds
):
    """The loss of the batch behind tells it, which is blamed until the updates before it are done once more."""
    with caplog.at_level(logging.WARNING, logger="train"):
        weights, progress = explode(tmp_path, *bad, checkpoint_every=every)
    assert progress.skipped == list(bad) and progress.step == STEPS
    assert_same_weights(weights, calm(*bad)[0])
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == rewinds
    assert f"Step {bad[0] + 2}, on batch {bad[0] + 1} " in lines[0] and f"leaving out batch {bad[0] + 1};" in lines[0]
    assert f"Step {bad[0] + 1}, on batch {bad[0]} " in lines[1] and "left weights with a loss of " in lines[1]
    assert f"leaving out batch {bad[0]}, and batch {bad[0] + 1} no longer; batches left out: 1" in lines[1]


@pytest.mark.nightly
def test_a_run_that_stops_says_that_the_batch_before_may_have_done_it(tmp_path):
    with pytest.raises(DivergenceError) as caught:
        explode(tmp_path, 8, on_divergence="stop")
    assert "Step 10, on batch 9 of the stream" in str(caught.value)
    assert "If a batch is the cause, that one or one before it, training.on_divergence" in str(caught.value)


# a validation that meets it first


class FailsOnce:
    """A validation that finds something that is not finite, once."""

    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        if self.calls == 1:
            raise NotFiniteError("The loss of the validation text is nan.")
        return no_validation()


@pytest.mark.slow
@pytest.mark.parametrize("every", [EVERY, LATER + 1], ids=["no checkpoint due", "a checkpoint due"])
def test_nothing_is_saved_after_a_validation_that_is_not_finite(tmp_path, every):
    with pytest.raises(DivergenceError) as caught:
        train(tmp_path, BATCHES, "stop", validate=FailsOnce(), checkpoint_every=every)
    assert f"Step {LATER + 1}, on batch {LATER} of the stream" in str(caught.value)
    assert "validation text is nan. Training has diverged. Lower training.learning_rate" in str(caught.value)
    assert checkpoint_names(tmp_path) == [f"step-{EVERY:08d}.npz"] * (every == EVERY)


@pytest.mark.slow
def test_a_validation_that_is_not_finite_rewinds_and_leaves_out_the_batch_before_it(tmp_path, calm):
    validate = FailsOnce()
    weights, progress = train(tmp_path, BATCHES, validate=validate)
    assert_same_weights(weights, calm(LATER)[0])
    assert progress.skipped == [LATER] and validate.calls == 3
    assert steps_of(tmp_path) == list(range(1, STEPS + 1))


class Killed(BaseException):
    """Stands for kill -9."""


@pytest.mark.nightly
def test_a_run_killed_after_a_rewind_and_started_again_ends_the_same(tmp_path, calm):
    """Killed between the rewind to step 4 and the checkpoint of step 8, the first that knows of the batch left out."""

    def kill():
        raise Killed

    batches = Poisoned(lambda number: number == LATER)
    with pytest.raises(Killed):
        train(tmp_path, batches, validate=kill)  # at step 7, which diverged before it was validated
    names = checkpoint_names(tmp_path)
    assert names == ["step-00000000.npz", f"step-{EVERY:08d}.npz"]
    weights, progress = train(tmp_path, batches)
    assert_same_weights(weights, calm(LATER)[0])
    assert progress.skipped == [LATER] and steps_of(tmp_path) == list(range(1, STEPS + 1))


@pytest.mark.slow
def test_if_every_batch_diverges_it_stops_after_so_many_rewinds(tmp_path):
    with pytest.raises(
        DivergenceError, match=f"{REWINDS} batches have been left out since the checkpoint of step {EVERY}"
    ):
        train(tmp_path, Poisoned(lambda number: number >= LATER))
    assert checkpoint_names(tmp_path)[-1] == f"step-{EVERY:08d}.npz"


# messages
