"""What Keras promises of every layer and model, on JAX and PyTorch: the same tests, run there."""

import pytest

from tests.support.processes import run_on_backend

pytestmark = pytest.mark.release

SCRIPT = """
import sys, pytest
outcome = pytest.main([
    "-q", "-p", "no:cacheprovider", "-m", "", "-k", "not quantize",
    "tests/library/test_keras_promises.py", "tests/library/test_translation_model.py",
])
assert outcome == 0, outcome
"""


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_another_backend_keeps_every_promise(backend, tmp_path):
    run_on_backend(backend, SCRIPT, tmp_path)
