"""Attention in cuDNN's kernel: the same function, called where it is right, and nothing else is computed beside it."""

import sys
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from keras_transformer.layers.attention import scaled_dot_product_attention
from keras_transformer.layers.fused_attention import fused_attention, has_fused_kernel
from tests.support.models import assert_close, normal
from tests.support.processes import run_without_tensorflow

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


@pytest.mark.release
def test_fused_attention_and_its_gradients_equal_the_formula(on_jax):
    for number in range(4):  # output; gradients by query, key, value
        fused, explicit = (getattr(on_jax, f"{name}_{number}") for name in ("fused", "explicit"))
        assert abs(explicit).max() > 0.5
        assert_close(fused, explicit, atol=0.02, rtol=0.02)  # bfloat16 has 8 bits: steps of 0.016 at 2 to 4


@pytest.mark.release
def test_fused_attention_returns_zeros_for_a_query_that_may_attend_to_nothing(on_jax):
    assert_close(on_jax.fused_0[0, :, 5], np.zeros((2, 8)), atol=0)
    assert_close(on_jax.fused_1[0, :, 5], np.zeros((2, 8)), atol=0)


@pytest.mark.release
def test_lowered_for_a_gpu_every_attention_of_a_step_calls_cudnn_forward_and_backward(on_jax):
    assert on_jax.kernel_calls_sinusoidal.tolist() == [3, 3]  # one encoder block, one decoder block


@pytest.mark.release
def test_positions_that_rotate_keep_the_kernel_and_those_that_add_a_bias_have_it_for_the_memory_alone(on_jax):
    assert on_jax.kernel_calls_rotary.tolist() == [3, 3]
    assert on_jax.kernel_calls_alibi.tolist() == [1, 1]
    assert_close(on_jax.rotated_1, on_jax.rotated_0, atol=0.02, rtol=0.02)
    assert np.abs(on_jax.rotated_2 - on_jax.rotated_0).max() > 0.1


@pytest.mark.release
def test_a_compiled_step_with_the_fused_kernel_computes_no_attention_weights(on_jax):
    assert on_jax.weights_if_explicit
    assert not on_jax.weights_if_fused


@pytest.mark.release
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


def test_by_separate_operations_it_is_the_same_function():
    query, key, value = normal(2, 3, 5, 8, seed=1), normal(2, 3, 4, 8, seed=2), normal(2, 3, 4, 8, seed=3)
    some = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 1], [0, 1, 1, 0]], bool)[
        np.newaxis, np.newaxis
    ]
    for mask in (None, some):
        expected, _ = scaled_dot_product_attention(query, key, value, mask)
        assert_close(fused_attention(query, key, value, mask), expected, atol=1e-4)


RIGHT = {"backend": "jax", "device": "gpu", "dtype": "bfloat16", "queries": 4, "keys": 6, "d_k": 16, "d_v": 16}
WRONG = [
    ("backend", "tensorflow"),
    ("device", "cpu"),
    ("device", "tpu"),
    ("dtype", "float16"),
    ("dtype", "float32"),
    ("queries", 1),
    ("keys", 3),
    ("d_k", 8),
    ("d_v", 8),
]


@pytest.mark.parametrize(("name", "other"), WRONG, ids=str)
def test_the_kernel_is_taken_only_if_all_its_conditions_hold(name, other, monkeypatch):
    def is_taken(backend, device, dtype, queries, keys, d_k, d_v):
        monkeypatch.setattr(keras.backend, "backend", lambda: backend)
        monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(default_backend=lambda: device))
        query, key, value = (
            SimpleNamespace(shape=shape, dtype=dtype)
            for shape in ((2, 3, queries, d_k), (2, 3, keys, d_k), (2, 3, keys, d_v))
        )
        return has_fused_kernel(query, value)

    assert is_taken(**RIGHT) and not is_taken(**RIGHT | {name: other})
    assert [is_taken(**RIGHT | {"d_k": width, "d_v": width}) for width in (8, 12, 128, 136)] == [
        True,
        False,
        True,
        False,
    ]
    monkeypatch.setattr(keras.config, "is_flash_attention_enabled", lambda: False)
    assert not is_taken(**RIGHT)
