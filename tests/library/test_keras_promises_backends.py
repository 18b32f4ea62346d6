"""What Keras promises of every layer and model, on JAX and PyTorch: the same tests, run there."""

import pytest

from tests.support.processes import run_on_backend

pytestmark = pytest.mark.release

# PyTorch compiles C++ for each layer unless it is told to run what it has traced, as all but the last test tell it
SCRIPT = """
import functools, sys, keras, pytest
if keras.backend.backend() == "torch":
    import torch
    torch.compile = functools.partial(torch.compile, backend="aot_eager")
outcome = pytest.main([
    "-q", "-p", "no:cacheprovider", "-m", "", "-k", "not quantize",
    "tests/library/test_keras_promises.py", "tests/library/test_translation_model.py",
])
assert outcome == 0, outcome
"""


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_another_backend_keeps_every_promise(backend, tmp_path):
    run_on_backend(backend, SCRIPT, tmp_path)


COMPILED = """
import pytest
path = "tests/library/test_translation_model.py"
outcome = pytest.main(["-q", "-p", "no:cacheprovider", "-m", "", "-k", "a_compiled_model and transformer", path])
assert outcome == 0, outcome
"""


def test_a_whole_model_computes_the_same_compiled_by_pytorchs_own_compiler(tmp_path):
    assert "1 passed" in run_on_backend("torch", COMPILED, tmp_path)
