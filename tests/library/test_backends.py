"""The model is Keras alone: on another backend it computes the same, without TensorFlow."""

import functools

import numpy as np
import pytest

from keras_transformer.recurrent.config import RecurrentConfig
from keras_transformer.runs.kinds import build_model
from tests.support.models import GAINS, SMALL, batch_of
from tests.support.processes import run_without_tensorflow
from tests.support.variants import VARIANTS

pytestmark = pytest.mark.release

RECURRENT = RecurrentConfig(SMALL.vocab_size, d_model=16)
CONFIGS = {
    "post": SMALL,
    "pre": SMALL.replace(norm="pre", positions="learned", attention_bias=True),
    "recurrent": RECURRENT.replace(cell="lstm", encoder_layers=2, decoder_layers=2),
    "additive": RECURRENT.replace(attention="additive", bidirectional=False),
    **{variant: SMALL.replace(**changes) for variant, changes in VARIANTS.items()},
}
ROWS = [[([5, 6, 7, 3], [2, 8, 9]), ([10, 3], [2, 11])], [([12, 13, 3], [2, 14, 15, 16])]]


@functools.cache
def logits(name):
    """Logits of a model whose weights are sine waves: two processes compute the same weights without sharing a file."""
    model = build_model(CONFIGS[name])
    for number, weight in enumerate(model.trainable_weights):
        wave = np.sin(np.arange(np.prod(weight.shape)) * 1.7 + number)
        weight.assign(0.3 * wave.reshape(weight.shape) + (weight.name in GAINS))
    return model.predict(batch_of(ROWS, 7, 6), verbose=0)


SCRIPT = """
import sys, numpy
from tests.library.test_backends import CONFIGS, logits
numpy.savez(sys.argv[1], **{name: logits(name) for name in CONFIGS})
print("tensorflow" in sys.modules)
"""


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_another_backend_gives_the_same_logits_without_tensorflow(backend, tmp_path):
    run_without_tensorflow(backend, SCRIPT, tmp_path / "logits.npz")
    with np.load(tmp_path / "logits.npz") as found:
        for name in CONFIGS:
            np.testing.assert_allclose(found[name], logits(name), atol=1e-5, rtol=1e-5)
