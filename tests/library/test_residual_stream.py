"""The root mean square of what each block hands on: a closed form, real positions only, by hand with NumPy."""

import types

import numpy as np
import pytest

from keras_transformer.inspection.residual_stream import ResidualStream, root_mean_square
from keras_transformer.model import Transformer, encoder
from tests.support.models import SMALL, as_numpy, batch_of, randomise

PAIRS = [[([5, 6, 7], [8, 9])], [([10], [11, 12, 13])]]


def test_it_is_the_root_of_the_mean_square_over_real_positions():
    states = np.array([[[3.0, 1.0], [np.sqrt(5.0), 1.0], [100.0, 100.0]]], "float32")
    assert root_mean_square(states, np.array([[True, True, False]])) == pytest.approx(2.0)


def sizes(model, batch):
    return ResidualStream(model, batch, log=None).sizes()


def test_after_layer_norm_it_is_1():
    found = sizes(Transformer(SMALL), batch_of(PAIRS, 4, 4))
    assert found == {
        f"{side}coder_block_{number}": pytest.approx(1.0, rel=1e-3) for side in ("en", "de") for number in (1, 2)
    }


@pytest.fixture(scope="module")
def transformer():
    return randomise(Transformer(SMALL.replace(dropout=0.5)))


def test_that_of_the_last_block_of_the_encoder_is_that_of_its_output_by_hand(transformer):
    batch = batch_of(PAIRS, 4, 4)
    memory = as_numpy(encoder(transformer)({name: batch[name] for name in ("source_ids", "source_segments")}))
    real = memory[batch["source_segments"] > 0]
    assert real.shape == (4, SMALL.d_model)
    assert sizes(transformer, batch)["encoder_block_2"] == pytest.approx(np.sqrt((real**2).mean()), rel=1e-5)


def test_padding_does_not_change_it(transformer):
    found = sizes(transformer, batch_of(PAIRS, 4, 4))
    assert sizes(transformer, batch_of(PAIRS, 9, 7)) == {
        name: pytest.approx(size, rel=1e-5) for name, size in found.items()
    }


def test_it_is_written_with_the_weights_as_they_are(transformer):
    written = []
    log = types.SimpleNamespace(write=lambda step, values: written.append((step, values)))
    stream = ResidualStream(transformer, batch_of(PAIRS, 4, 4), log)
    gamma = transformer.get_layer("encoder_block_2").feed_forward_residual.norm.gamma
    before = gamma.numpy()
    for step, factor in ((10, 1), (20, 100)):
        gamma.assign(factor * before)
        stream.inspect(step)
    gamma.assign(before)
    (first_step, first), (last_step, last) = written
    name = "validation/residual_rms/encoder_block_2"
    assert (first_step, last_step) == (10, 20) and last[name] > 10 * first[name]
    assert set(first) == {
        f"validation/residual_rms/{side}coder_block_{number}" for side in ("en", "de") for number in (1, 2)
    }
