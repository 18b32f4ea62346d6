"""The training step with a recurrent model: it learns, it resumes exactly, and packing changes nothing."""

import numpy as np
import pytest

from keras_transformer.recurrent.config import RecurrentConfig
from tests.support.training import BATCHES, TINY, momenta_of, train, training_model, weights_of
from train.loop.checkpoints import Checkpoints
from train.loop.progress import Progress

pytestmark = pytest.mark.slow

CONFIG = RecurrentConfig(vocab_size=TINY.vocab_size, d_model=16, encoder_layers=2, decoder_layers=2)
PLAIN_ADAM = {"schedule": "constant", "learning_rate": 0.02, "clip_norm": 0.1}


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """A model after 6 steps, the logs of each half of them, and the folder with its checkpoint of step 3."""
    folder, model = tmp_path_factory.mktemp("checkpoints"), training_model(dropout=0.2, config=CONFIG, **PLAIN_ADAM)
    first = train(model, 0, 3)
    Checkpoints(folder).save(model, model.optimizer, Progress(3))
    return model, first, train(model, 3, 6), folder


@pytest.mark.nightly
def test_a_run_that_is_resumed_in_a_new_model_gives_the_same_bits(straight):
    model, _, second, folder = straight
    resumed = training_model(dropout=0.2, config=CONFIG, weights_seed=2, **PLAIN_ADAM)
    assert Checkpoints(folder).restore_latest(resumed, resumed.optimizer) == Progress(3)
    assert train(resumed, 3, 6) == second
    states = ([*weights_of(one), *momenta_of(one)] for one in (resumed, model))
    for found, expected in zip(*states, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.nightly
def test_every_place_of_dropout_has_a_stream_of_its_own(straight):
    """Before each layer of the encoder, on what the decoder reads, between its layers, and before the logits."""
    model, *_ = straight
    streams = {tuple(value.numpy()) for _, value in model.dropout_states(0, 0)}
    assert len(streams) == len(model.random_states()) == 2 + 1 + 1 + 1


@pytest.mark.nightly
def test_every_layer_of_the_decoder_but_the_first_has_a_stream_of_its_own():
    """A stream that serves two layers would give one the mask that the other has at the next step."""
    model = training_model(dropout=0.2, config=CONFIG.replace(decoder_layers=4), **PLAIN_ADAM)
    streams = {tuple(value.numpy()) for _, value in model.dropout_states(0, 0)}
    assert len(streams) == len(model.random_states()) == 2 + 1 + 3 + 1


@pytest.mark.nightly
def test_the_logged_norm_is_that_before_the_limit_and_the_rate_is_the_given_one(straight):
    _, first, second, _ = straight
    assert max(step["gradient_norm"] for step in first + second) > PLAIN_ADAM["clip_norm"]
    assert {round(step["learning_rate"], 6) for step in first + second} == {0.02}


@pytest.mark.nightly
def test_it_learns_to_copy_under_xla():
    model = training_model(config=CONFIG.replace(encoder_layers=1, decoder_layers=1), xla=True, **PLAIN_ADAM)
    losses = [step["loss"] for step in train(model, 0, 60, BATCHES)]
    assert np.isfinite(losses).all() and np.mean(losses[-5:]) < 0.75 * losses[0]
