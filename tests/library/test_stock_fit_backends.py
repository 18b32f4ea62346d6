"""Stock `fit` on JAX and PyTorch: the same history, metrics and predictions as on TensorFlow, saved and loaded.

Keras itself imports TensorFlow for `fit` if it is installed, so that these processes have it beside their backend.
"""

import functools

import numpy as np
import pytest

from tests.support.processes import run_on_backend
from tests.support.scripts.stock_fit import copying_arrays, dropout_mask, one_fit

pytestmark = pytest.mark.release
SCRIPT = """
import pathlib, sys
from tests.support.scripts.stock_fit import fit_save_and_load
fit_save_and_load(pathlib.Path(sys.argv[1]))
"""


@functools.cache
def on_tensorflow():
    model, history = one_fit(epochs=2, dropout=0.0)
    return model.predict(copying_arrays()[0], batch_size=8, verbose=0), history


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_another_backend_fits_evaluates_saves_and_loads_as_tensorflow_does(backend, tmp_path):
    run_on_backend(backend, SCRIPT, tmp_path, XLA_FLAGS="")  # compiled as users do
    logits, history = on_tensorflow()
    with np.load(tmp_path / "found.npz") as found:
        np.testing.assert_allclose(found["logits"], logits, atol=2e-3)
        np.testing.assert_array_equal(found["loaded_logits"], found["logits"])
        for name, values in history.items():
            np.testing.assert_allclose(found[f"fit/{name}"], values, rtol=1e-3)
        for name in ("loss", "accuracy", "perplexity"):
            np.testing.assert_allclose(found[f"evaluate/{name}"], found[f"fit/val_{name}"][-1], rtol=1e-5)
        np.testing.assert_array_equal(found["dropout_mask"], dropout_mask())
        assert np.isfinite(found["dropout_loss"]).all() and abs(found["dropout_loss"][0] - found["fit/loss"][0]) > 0.01
