"""Attention in cuDNN's kernel: the same function, called where it is right, and nothing else is computed beside it."""

from types import SimpleNamespace

import numpy as np
import pytest

from tests.support.models import assert_close
from tests.support.processes import run_without_tensorflow

pytestmark = pytest.mark.release
SCRIPT = """
import sys
import tests.support.scripts.fused_attention as fused_attention
fused_attention.main(sys.argv[1])
print("tensorflow" in sys.modules)
"""


@pytest.fixture(scope="module")
def on_jax(tmp_path_factory):
    """The results of tests/support/scripts/fused_attention.py."""
    path = tmp_path_factory.mktemp("jax") / "found.npz"
    run_without_tensorflow("jax", SCRIPT, path)
    with np.load(path) as arrays:
        return SimpleNamespace(**{name: arrays[name] for name in arrays.files})


def test_fused_attention_and_its_gradients_equal_the_formula(on_jax):
    for number in range(4):  # output; gradients by query, key, value
        fused, explicit = (getattr(on_jax, f"{name}_{number}") for name in ("fused", "explicit"))
        assert abs(explicit).max() > 0.5
        assert_close(fused, explicit, atol=0.02, rtol=0.02)  # bfloat16 has 8 bits: steps of 0.016 at 2 to 4


def test_fused_attention_returns_zeros_for_a_query_that_may_attend_to_nothing(on_jax):
    assert_close(on_jax.fused_0[0, :, 5], np.zeros((2, 8)), atol=0)
    assert_close(on_jax.fused_1[0, :, 5], np.zeros((2, 8)), atol=0)


def test_lowered_for_a_gpu_every_attention_of_a_step_calls_cudnn_forward_and_backward(on_jax):
    assert on_jax.kernel_calls.tolist() == [3, 3]  # one encoder block, one decoder block


def test_a_compiled_step_with_the_fused_kernel_computes_no_attention_weights(on_jax):
    assert on_jax.weights_if_explicit
    assert not on_jax.weights_if_fused


@pytest.mark.parametrize(
    ("case", "is_taken"),
    [
        ("in_bfloat16", True),
        ("in_float16", False),
        ("in_float32", False),
        ("for_one_query", False),
        ("for_width_12", False),
        ("for_width_128", True),
        ("for_width_136", False),
        ("when_disabled", False),
        ("without_a_gpu", False),
    ],
)
def test_the_fused_kernel_is_used_only_if_it_is_right(on_jax, case, is_taken):
    assert getattr(on_jax, f"taken_{case}") == is_taken
