"""Frozen layers: what a name freezes, that training changes nothing of it, and that a killed run leaves it frozen."""

import logging

import numpy as np
import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.model import Transformer
from tests.support.training import TINY, fit_in, no_validation, reusable, weights_of
from train.loop.checkpoints import Checkpoints, read_checkpoint
from train.step.freezing import check_frozen, freeze, is_named

FROZEN = ("decoder*", "embedding")
EVERY = {"steps": 6, "checkpoint_every": 2, "validate_every": 2}


@pytest.mark.parametrize(
    ("pattern", "is_frozen"),
    [
        ("encoder*", True),
        ("encoder_block_1", True),
        ("encoder_block_1/feed_forward", True),
        ("*/kernel", True),
        ("encoder_block_?", True),
        ("encoder", False),
        ("encoder_block_1/feed", False),
        ("Encoder*", False),
        ("decoder*", False),
    ],
)
def test_a_pattern_is_the_name_of_a_layer_of_a_part_of_it_or_of_a_weight(pattern, is_frozen):
    assert is_named("encoder_block_1/feed_forward/inner/kernel", pattern) is is_frozen


@pytest.mark.parametrize(
    ("patterns", "parts"),
    [
        (["encodr*"], ["'encodr*'", "encoder_block_1, ", "decoder_block_1", "embedding"]),
        (["embedding", "*x*y*z"], ["'*x*y*z'"]),
        (["*"], ["['*']", "every weight"]),
    ],
)
def test_a_name_that_freezes_nothing_or_everything_is_one_sentence_with_the_names_that_exist(patterns, parts):
    transformer = Transformer(TINY)
    for refuses in (lambda: freeze(transformer, patterns), lambda: check_frozen(TINY, patterns)):
        with pytest.raises(ConfigError) as error:
            refuses()
        assert all(part in str(error.value) for part in parts) and "\n" not in str(error.value)
    assert len(transformer.trainable_weights) == len(transformer.weights)


def test_how_much_is_frozen_is_logged_if_anything_is(caplog):
    transformer = Transformer(TINY)
    with caplog.at_level(logging.INFO, logger="train"):
        freeze(transformer, [])
        freeze(transformer, ["embedding"])
    assert caplog.messages == [f"frozen: {TINY.vocab_size * TINY.d_model} of {transformer.count_params():,} parameters"]


# training: a moving average beside it, since both decide what a checkpoint holds


def frozen_model():
    return reusable(dropout=0.2, ema_decay=0.9, frozen=FROZEN).from_the_start()


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """The arrays of the last checkpoint of six steps in a row, and the weights before the first."""
    folder, model = tmp_path_factory.mktemp("calm"), frozen_model()
    before = dict(zip([weight.path for weight in model.weights], weights_of(model), strict=True))
    fit_in(folder, model, **EVERY)
    return last_checkpoint(folder), before


def last_checkpoint(folder):
    return read_checkpoint(Checkpoints(folder / "checkpoints").paths()[-1])


def is_frozen(name):
    return any(part in name for part in ("decoder_block", "embedding"))


@pytest.mark.nightly
def test_frozen_weights_stay_bit_for_bit_and_all_others_are_trained(calm):
    found, before = calm
    assert {is_frozen(path) for path in before} == {True, False}
    for path, weight in before.items():
        assert np.array_equal(found[f"model/{path}"], weight) is is_frozen(path), path


@pytest.mark.nightly
def test_frozen_weights_have_no_state_in_the_optimizer(calm):
    found, before = calm
    names = [name for name in found if name.startswith("optimizer/adam/") and found[name].ndim]
    assert not any(map(is_frozen, names))
    assert len(names) == 3 * sum(not is_frozen(path) for path in before)  # two moments and an average


@pytest.mark.nightly
def test_a_killed_run_ends_bit_for_bit_the_same_with_frozen_layers_and_a_moving_average(tmp_path, calm):
    def killed():
        if (tmp_path / "checkpoints/step-00000002.npz").exists():  # after step 4, before its checkpoint
            raise KeyboardInterrupt
        return no_validation()

    with pytest.raises(KeyboardInterrupt):
        fit_in(tmp_path, frozen_model(), validate=killed, **EVERY)
    fit_in(tmp_path, frozen_model(), **EVERY)
    found, expected = last_checkpoint(tmp_path), calm[0]
    assert found.keys() == expected.keys()
    for name in found.keys() - {"progress"}:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
