"""Early stopping and the best checkpoint: both go by validation, and a run that is killed takes the same decisions."""

import logging
import math
import types

import keras
import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.runs.run_folder import RunFolder
from tests.support.training import assert_same_weights, checkpoint_names, fit_in, reusable, scores_of, weights_of
from train.config.training import TrainingConfig, check_idle_keys
from train.loop.best import count_validation, early_stop_sentence, has_stopped_early, is_better_than_kept
from train.loop.checkpoints import Checkpoints, read_checkpoint
from train.loop.progress import Progress
from train.validation.selection import candidate_weights
from train.validation.validation import Sample, Validation

EVERY = {"steps": 20, "validate_every": 2, "checkpoint_every": 3}
BLEU = {2: 1.0, 4: 3.0, 6: 2.0, 8: 3.0}  # by step; an equal score is no better one


def validation(loss=1.0, loss_basis="", scores_basis="", **scores):
    sample = [Sample("a", "b", "c")]
    return Validation(loss, 1.0, 1.0, scores_of(**scores), sample, loss_basis=loss_basis, scores_basis=scores_basis)


def by_step(model, scores, **killed):
    """A validation that is a function of the weights' step; at the step `killed_at` the process dies instead."""

    def validate():
        step = int(model.optimizer.iterations)
        if step == killed.get("killed_at"):
            raise KeyboardInterrupt
        return validation(bleu=scores.get(step, 0.0))

    return validate


def trained(folder, killed_at=None, scores=BLEU, **training):
    """Train a fresh model in `folder` as a new process does. Returns the Progress and the weights."""
    model = reusable(dropout=0.2).from_the_start()
    progress = fit_in(folder, model, validate=by_step(model, scores, killed_at=killed_at), **EVERY | training)
    return progress, weights_of(model)


# which validation is the best


@pytest.mark.parametrize(
    ("metric", "better", "worse"),
    [
        ("bleu", {"bleu": 2.0}, {"bleu": 1.0, "chrf": 9.0, "loss": 0.1}),
        ("chrf", {"chrf": 2.0}, {"chrf": 1.0, "bleu": 9.0, "loss": 0.1}),
        ("loss", {"loss": 1.0}, {"loss": 2.0, "bleu": 9.0, "chrf": 9.0}),
    ],
)
def test_the_metric_decides_and_an_equal_score_is_no_better_one(metric, better, worse):
    progress, found = Progress(), []
    for step, scores in enumerate([worse, better, better, worse], start=1):
        progress.step = step
        found.append((count_validation(progress, validation(**scores), metric), progress.validations_since_best))
    assert found == [(True, 0), (True, 0), (False, 1), (False, 2)]
    assert progress.best_step == 2


@pytest.mark.parametrize("undefined", [{"undefined": "short"}, {"bleu": math.nan}])
def test_an_undefined_score_does_not_count(undefined):
    progress = Progress(4, best_metric="bleu", best_score=1.0, best_step=2, validations_since_best=1)
    before = Progress(**vars(progress))
    assert not count_validation(progress, validation(**undefined), "bleu")
    assert progress == before
    assert not count_validation(fresh := Progress(4), validation(**undefined), "bleu") and fresh == Progress(4)


@pytest.mark.parametrize(("metric", "score", "words"), [("loss", -1.23456, "loss 1.235"), ("bleu", 30.0, "bleu 30")])
def test_an_early_stop_names_its_step_and_the_best_validation(metric, score, words):
    progress = Progress(9, best_metric=metric, best_score=score, best_step=5, validations_since_best=2)
    assert early_stop_sentence(progress) == (
        f"stopped early after step 9: the last 2 validations were no better than the best one, {words} after step 5"
    )


def test_another_metric_begins_anew():
    progress = Progress(6, best_metric="bleu", best_score=30.0, best_step=2, validations_since_best=2)
    assert not has_stopped_early(progress, TrainingConfig(patience=2, best_metric="loss"))
    assert count_validation(progress, validation(loss=5.0), "loss")
    assert (progress.best_metric, progress.best_score, progress.best_step) == ("loss", -5.0, 6)


@pytest.mark.parametrize(("metric", "basis"), [("bleu", "scores_basis"), ("loss", "loss_basis")])
def test_another_text_or_search_begins_anew(metric, basis):
    """20 BLEU of harder sentences is not worse than 40 of easier ones, and training may be getting better."""
    progress = Progress(2)
    easy, hard = ({"bleu": 40.0, "loss": 1.0, basis: "easy"}, {"bleu": 20.0, "loss": 2.0, basis: "hard"})
    assert count_validation(progress, validation(**easy), metric)
    assert not count_validation(progress, validation(**hard | {basis: "easy"}), metric)
    assert count_validation(progress, validation(**hard), metric) and progress.validations_since_best == 0
    assert not count_validation(progress, validation(**hard), metric)
    (other,) = {"scores_basis", "loss_basis"} - {basis}  # is of other scores
    assert not count_validation(progress, validation(**hard, **{other: "other"}), metric)


@pytest.mark.parametrize(("basis", "is_better"), [("easy", False), ("hard", True), ("", False)])
def test_the_best_checkpoint_of_another_text_is_none(basis, is_better):
    """That of a run of before it was recorded is known to nobody, and can be compared."""
    progress = Progress(8, kept_metric="bleu", kept_basis=basis and "easy", kept_score=40.0, kept_step=4)
    assert is_better_than_kept(progress, validation(bleu=20.0, scores_basis=basis or "any"), "bleu") is is_better
    progress = Progress(8, best_metric="bleu", best_basis=basis and "easy", best_score=40.0, best_step=4)
    assert count_validation(progress, validation(bleu=20.0, scores_basis=basis or "any"), "bleu") is is_better
    assert progress.validations_since_best == (not is_better)


def test_a_metric_by_which_nothing_goes_is_refused():
    for training in ({}, {"patience": 3, "best_metric": "loss"}, {"keep_best": True, "best_metric": "chrf"}):
        check_idle_keys(TrainingConfig(**training))
    with pytest.raises(ConfigError, match='best_metric is "loss".* training.patience .*leave'):
        check_idle_keys(TrainingConfig(best_metric="loss"))


@pytest.mark.parametrize(("patience", "is_over"), [(None, False), (1, True), (2, True), (3, False)])
def test_patience_is_a_number_of_validations_in_a_row(patience, is_over):
    progress = Progress(best_metric="bleu", validations_since_best=2)
    assert has_stopped_early(progress, TrainingConfig(patience=patience)) is is_over


# training


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """The folder, Progress and weights of a run that stopped early without having been killed."""
    folder = tmp_path_factory.mktemp("calm")
    return folder, *trained(folder, patience=2, keep_best=True)


@pytest.mark.nightly
def test_training_stops_after_so_many_validations_without_a_better_one(calm, caplog):
    folder, progress, weights = calm
    assert (progress.step, progress.best_step, progress.validations_since_best) == (8, 4, 2)
    assert checkpoint_names(folder) == ["best-00000004.npz"] + [f"step-0000000{step}.npz" for step in (3, 6, 8)]
    with caplog.at_level(logging.INFO, logger="train"):
        again, same = trained(folder, patience=2, keep_best=True)
    assert again == progress and "stopped early after step 8" in caplog.text
    assert_same_weights(same, weights)


@pytest.mark.nightly
@pytest.mark.parametrize("killed_at", [4, 8])
def test_a_killed_run_stops_at_the_same_step_with_the_same_weights_and_the_same_best_ones(tmp_path, calm, killed_at):
    folder, progress, weights = calm
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, killed_at=killed_at, patience=2, keep_best=True)
    resumed, same = trained(tmp_path, patience=2, keep_best=True)
    assert (resumed.step, resumed.best_step, resumed.best_score) == (8, 4, 3.0)
    assert_same_weights(same, weights)
    assert checkpoint_names(tmp_path) == checkpoint_names(folder)
    one, other = (read_checkpoint(run / "checkpoints/best-00000004.npz", "model/") for run in (tmp_path, folder))
    assert_same_weights(one.values(), other.values())


@pytest.mark.nightly
def test_the_best_checkpoint_has_the_weights_of_its_step(tmp_path, calm):
    _, weights = trained(tmp_path, steps=4)
    assert_same_weights(read_checkpoint(calm[0] / "checkpoints/best-00000004.npz", "model/").values(), weights)
    assert checkpoint_names(tmp_path) == ["step-00000003.npz", "step-00000004.npz"]  # not kept unless asked for


@pytest.mark.nightly
def test_a_run_that_begins_late_to_keep_the_best_one_keeps_the_best_from_then_on(tmp_path):
    """The weights of the best validation before, at step 4, are lost: a better one than that may never come."""
    trained(tmp_path, steps=5)
    progress, _ = trained(tmp_path, steps=9, keep_best=True, scores=BLEU | {8: 2.5})
    assert (progress.kept_step, progress.kept_score, progress.best_step, progress.best_score) == (8, 2.5, 4, 3.0)
    assert checkpoint_names(tmp_path)[0] == "best-00000008.npz"


@pytest.mark.nightly
def test_a_best_checkpoint_of_steps_that_were_done_otherwise_takes_no_other_ones_place(tmp_path):
    """Step 4 is the best, and its process dies before the checkpoint of step 6; then the scores are others."""
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, steps=9, keep_best=True, killed_at=6)
    names = ["best-00000002.npz", "best-00000004.npz"]  # the one of step 2 is that of the last checkpoint
    assert checkpoint_names(tmp_path) == [*names, "step-00000003.npz"]
    assert [name for name, _ in candidates_of(tmp_path)] == ["the last checkpoint", "the best checkpoint, of step 2"]
    progress, _ = trained(tmp_path, steps=5, keep_best=True, scores={4: 0.5})
    assert (progress.kept_step, progress.kept_score, checkpoint_names(tmp_path)[:1]) == (2, 1.0, names[:1])
    assert (progress.best_step, progress.best_score, progress.validations_since_best) == (2, 1.0, 2)  # steps 4, 5
    progress, _ = trained(tmp_path, steps=7, keep_best=True, scores={6: 1.7})
    assert (progress.kept_step, checkpoint_names(tmp_path)[0]) == (6, "best-00000006.npz")


@pytest.mark.nightly
def test_more_patience_continues_a_run_that_had_stopped(tmp_path):
    assert trained(tmp_path, patience=1)[0].step == 6
    progress, _ = trained(tmp_path, patience=2)
    assert (progress.step, progress.validations_since_best) == (8, 2)


def candidates_of(folder):
    """The sets of weights from which a finished run chooses."""
    return candidate_weights(RunFolder(folder), TrainingConfig(average_checkpoints=2, keep_best=True))


def test_a_best_checkpoint_goes_once_it_is_not_the_one_that_is_kept_even_of_the_same_step(tmp_path):
    model, optimizer = keras.Sequential(), types.SimpleNamespace(variables=[])
    checkpoints = Checkpoints(tmp_path)
    for step in (2, 4, 6):
        checkpoints._write(tmp_path / f"best-{step:08d}.npz", model, optimizer, Progress(step, kept_step=step))
    checkpoints.save(model, optimizer, Progress(4, kept_step=2))  # training goes on from here, by other settings
    assert [path.name for path in checkpoints.best_paths()] == ["best-00000002.npz", "best-00000006.npz"]  # comes again
    checkpoints.save(model, optimizer, Progress(6, kept_step=6))
    assert [path.name for path in checkpoints.best_paths()] == ["best-00000006.npz"]
