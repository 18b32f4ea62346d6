"""The average of the last checkpoints or the last one: the better on validation is kept, and said."""

import types

import keras
import numpy as np
import pytest

from keras_transformer.losses import TokenSums
from keras_transformer.run_folder import RunFolder
from tests.support.models import as_numpy, assert_close
from train.config import RunConfig
from train.evaluation.selection import choose_weights
from train.loop.checkpoints import Checkpoints

DATA = {"source": "numbers"}


@pytest.fixture
def folder(tmp_path):
    """A run whose one weight was 9, 1 and 3 at the checkpoints of steps 1, 2 and 3."""
    folder, model = RunFolder(tmp_path), one_weight()
    for step, value in ((1, 9.0), (2, 1.0), (3, 3.0)):
        model.weights[0].assign([[value]])
        Checkpoints(folder.checkpoints).save(step, model, keras.optimizers.SGD(name="sgd"), {})
    return folder


def one_weight():
    return keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False, name="dense")], name="model")


def choose(folder, best, average=2, best_bleu=None):
    """Choose among weights whose loss, summed over two tokens, is twice their distance from `best`.

    BLEU is 50 less the distance from `best_bleu`, or 0 where that is None.
    """
    model = one_weight()
    config = RunConfig(run_folder=str(folder.path), data=DATA, training={"average_checkpoints": average})

    def distance_from(value):
        return abs(float(as_numpy(model.weights[0])[0, 0]) - value)

    def validation_loss():
        return TokenSums(loss=2 * distance_from(best), nll=distance_from(best), correct=0.0, tokens=2.0)

    def validation_text():
        return types.SimpleNamespace(bleu=0.0 if best_bleu is None else 50 - distance_from(best_bleu)), []

    return choose_weights(config, folder, model, validation_loss, validation_text), model


def kept(folder):
    model = one_weight()
    model.load_weights(folder.weights)
    return as_numpy(model.weights[0])


def test_the_average_is_kept_where_it_is_better(folder):
    choice, model = choose(folder, best=2.0)
    assert_close(kept(folder), [[2.0]])
    assert_close(model.weights[0], [[2.0]])
    assert (choice.average.negative_loss, choice.last.negative_loss) == pytest.approx((0.0, -1.0))
    assert choice.perplexity == pytest.approx(1.0)
    assert choice.sentence == (
        "kept the average of the last 2 checkpoints: validation BLEU 0.00, loss 0.0000; "
        "the last checkpoint: validation BLEU 0.00, loss 1.0000"
    )


def test_bleu_decides_before_the_loss(folder):
    choice, _ = choose(folder, best=2.0, best_bleu=3.0)
    assert_close(kept(folder), [[3.0]])
    assert choice.sentence == (
        "kept the last checkpoint: validation BLEU 50.00, loss 1.0000; "
        "the average of the last 2 checkpoints: validation BLEU 49.00, loss 0.0000"
    )


def test_the_last_checkpoint_is_kept_where_it_is_better(folder):
    choice, model = choose(folder, best=3.5, average=3)
    assert_close(kept(folder), [[3.0]])
    assert_close(model.weights[0], [[3.0]])
    assert choice.perplexity == pytest.approx(np.exp(0.25))
    assert choice.sentence.startswith(
        "kept the last checkpoint: validation BLEU 0.00, loss 0.5000; the average of the "
    )


def test_fewer_checkpoints_than_asked_for_are_counted_as_they_are(folder):
    choice, _ = choose(folder, best=0.0, average=5)
    assert "the average of the last 3 checkpoints" in choice.sentence


def test_the_file_of_weights_has_its_name_only_when_it_is_whole(folder, monkeypatch):
    choose(folder, best=2.0)
    before = folder.weights.read_bytes()

    def save_half(model, path):
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(keras.Sequential, "save_weights", save_half)
    with pytest.raises(OSError, match="disk full"):
        choose(folder, best=3.0)
    assert folder.weights.read_bytes() == before
