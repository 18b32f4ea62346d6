"""Selection: the average of the last checkpoints or the last one, whichever is better on validation."""

import keras
import numpy as np
import pytest

from keras_transformer.runs.run_folder import RunFolder
from tests.support.models import as_numpy, assert_close, normal
from tests.support.training import scores_of, training_model
from train.config.training import TrainingConfig
from train.loop.checkpoints import Checkpoints
from train.loop.progress import Progress
from train.step.optimizer import training_optimizer
from train.validation.selection import best_candidate, moving_average, select_weights
from train.validation.validation import Validation


@pytest.fixture
def folder(tmp_path):
    """A run whose one weight was 9, 1 and 3 at the checkpoints of steps 1, 2 and 3."""
    folder, model = RunFolder(tmp_path), one_weight()
    for step, value in ((1, 9.0), (2, 1.0), (3, 3.0)):
        model.weights[0].assign([[value]])
        save(folder, model, Progress(step, kept_step=1))
    return folder


def save(folder, model, progress):
    Checkpoints(folder.checkpoints).save(model, keras.optimizers.SGD(name="sgd"), progress)


def one_weight():
    return keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False, name="dense")], name="model")


def select(folder, loss, average=2, bleu=lambda weight: 0.0, perplexity=lambda weight: 1.0, **training):
    """Select by functions of the weight; `training` are more fields. Returns the Selection and the model."""
    model = one_weight()

    def validator():
        weight = float(as_numpy(model.weights[0])[0, 0])
        return Validation(loss(weight), perplexity(weight), 0.0, scores_of(bleu(weight)), [])

    return select_weights(folder, TrainingConfig(average_checkpoints=average, **training), model, validator), model


def distance_from(value):
    return lambda weight: abs(weight - value)


def kept(folder):
    model = one_weight()
    model.load_weights(folder.weights)
    return as_numpy(model.weights[0])


def test_the_average_is_kept_if_its_loss_is_lower(folder):
    selection, model = select(folder, distance_from(2.0))
    assert_close(kept(folder), [[2.0]])
    assert_close(model.weights[0], [[2.0]])
    assert selection.kept.validation.loss == pytest.approx(0.0)
    assert str(selection) == (
        "kept the average of the last 2 checkpoints: validation BLEU 0.00, loss 0.0000; "
        "the last checkpoint: validation BLEU 0.00, loss 1.0000"
    )


def test_the_last_checkpoint_is_kept_if_its_loss_is_lower(folder):
    selection, model = select(folder, distance_from(3.5), average=3)
    assert_close(kept(folder), [[3.0]])
    assert_close(model.weights[0], [[3.0]])
    assert (selection.kept.name, selection.kept.validation.loss) == ("the last checkpoint", 0.5)


def test_bleu_decides_before_the_loss(folder):
    selection, _ = select(folder, distance_from(2.0), bleu=lambda weight: 47 + weight)
    assert_close(kept(folder), [[3.0]])
    assert str(selection) == (
        "kept the last checkpoint: validation BLEU 50.00, loss 1.0000; "
        "the average of the last 2 checkpoints: validation BLEU 49.00, loss 0.0000"
    )


def test_a_difference_in_bleu_that_is_not_printed_decides_nothing(folder):
    select(folder, distance_from(2.0), bleu=lambda weight: 47 + weight / 1000)
    assert_close(kept(folder), [[2.0]])


def test_perplexity_decides_nothing(folder):
    for sign in (1, -1):
        selection, _ = select(folder, lambda weight: 1.0, perplexity=lambda weight, sign=sign: 10 + sign * weight)
        assert selection.kept.name == "the average of the last 2 checkpoints"


def save_best(folder, step, value):
    """Write the best checkpoint of `step`, and the last one, by which it was kept."""
    model = one_weight()
    model.weights[0].assign([[value]])
    Checkpoints(folder.checkpoints).save_best(model, keras.optimizers.SGD(name="sgd"), Progress(step))
    model.weights[0].assign([[3.0]])
    save(folder, model, Progress(3, kept_step=step))


def test_the_best_checkpoint_is_a_candidate_if_it_is_kept(folder):
    save_best(folder, 1, 9.0)
    selection, _ = select(folder, distance_from(8.0), keep_best=True)
    assert_close(kept(folder), [[9.0]])
    assert str(selection).startswith("kept the best checkpoint, of step 1: ") and len(selection.others) == 2
    selection, _ = select(folder, distance_from(8.0))
    assert "best checkpoint" not in str(selection)


def test_the_best_checkpoint_is_no_second_candidate_if_it_is_the_last_one(folder):
    save_best(folder, 3, 3.0)
    selection, _ = select(folder, distance_from(8.0), keep_best=True)
    assert "best checkpoint" not in str(selection)


def test_a_best_checkpoint_of_another_step_than_the_kept_one_is_no_candidate(folder):
    """It is of steps that were done anew, with other settings."""
    save_best(folder, 1, 3.0)
    best = folder.checkpoints / "best-00000002.npz"
    (folder.checkpoints / "best-00000001.npz").rename(best)
    selection, _ = select(folder, distance_from(9.0), keep_best=True)
    assert "best checkpoint" not in str(selection) and best.exists()


def test_a_damaged_best_checkpoint_is_named_and_the_others_are_chosen_from(folder, caplog):
    (folder.checkpoints / "best-00000001.npz").write_bytes(b"torn")
    selection, _ = select(folder, distance_from(2.0), keep_best=True)
    assert len(selection.others) == 1 and "best-00000001.npz is damaged" in caplog.text


def test_the_moving_average_is_a_candidate_if_there_is_one(folder):
    model = one_weight()
    optimizer = training_optimizer(64, TrainingConfig(ema_decay=0.9))
    optimizer.build(model.trainable_variables)
    model.weights[0].assign([[4.0]])
    optimizer.averages[0].assign([[5.0]])
    Checkpoints(folder.checkpoints).save(model, optimizer, Progress(4))
    selection, _ = select(folder, distance_from(5.0), ema_decay=0.9)
    assert_close(kept(folder), [[5.0]])
    assert selection.kept.name == "the moving average of the weights" and len(selection.others) == 2
    selection, _ = select(folder, distance_from(5.0))
    assert_close(kept(folder), [[4.0]])


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
def test_the_moving_average_of_every_weight_is_found_however_deep_its_path(precision, tmp_path):
    model = training_model(ema_decay=0.9, precision=precision)
    optimizer, weights = model.optimizer, model.trainable_variables
    optimizer.build(weights)
    optimizer.apply([optimizer.scale_loss(normal(*weight.shape)) for weight in weights], weights)
    Checkpoints(tmp_path).save(model, optimizer, Progress(1))
    found = moving_average(tmp_path / "step-00000001.npz")
    averages = getattr(optimizer, "inner_optimizer", optimizer).averages
    assert max(weight.path.count("/") for weight in weights) > 2
    for weight, average in zip(weights, averages, strict=True):
        assert_close(found[weight.path], average, atol=0, rtol=0)
        assert (as_numpy(average) != as_numpy(weight)).any()


def test_an_interrupted_write_keeps_the_old_weights(folder, monkeypatch):
    select(folder, distance_from(2.0))
    names = {path.name for path in folder.path.iterdir()}
    before = folder.weights.read_bytes()

    def save_half(model, path):
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(keras.Sequential, "save_weights", save_half)
    with pytest.raises(OSError, match="disk full"):
        select(folder, distance_from(3.0))
    assert folder.weights.read_bytes() == before
    assert {path.name for path in folder.path.iterdir()} == names


def test_the_best_checkpoint_is_not_known_if_the_last_one_has_lost_its_progress(folder):
    checkpoints = Checkpoints(folder.checkpoints)
    (folder.checkpoints / "best-00000001.npz").write_bytes(checkpoints.paths()[0].read_bytes())
    (_, best), last = best_candidate(checkpoints, checkpoints.paths()[-1])[0], checkpoints.paths()[-1]
    assert_close(next(iter(best.values())), [[9.0]])
    np.savez(last, **{f"model/{name}": value for name, value in best.items()})
    assert best_candidate(checkpoints, last) == []
