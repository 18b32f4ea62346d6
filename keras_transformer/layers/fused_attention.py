"""Attention in one kernel of cuDNN, for the JAX backend on an NVIDIA GPU.

The kernel never holds the scores in memory. TensorFlow has no such kernel: `keras-transformer train` never reaches this
file.
"""

import keras
from keras import ops


def has_fused_kernel(query, value) -> bool:
    """True if the backend has one kernel for attention between such queries and values, and the kernel is exact enough.

    Shapes: as in `scaled_dot_product_attention`. The answer depends on shapes and types alone, so tracing decides it.

    The kernel needs JAX, a GPU and bfloat16. Float16 is excluded: there the kernel masks by adding -32,768, which a
    high score can outweigh. TPUs are excluded: there Keras applies the mask of the first row to every row. Keras
    itself falls back to separate operations on a GPU that is too old. `keras.config.disable_flash_attention()` turns
    the kernel off.
    """
    if keras.backend.backend() != "jax" or keras.config.is_flash_attention_enabled() is False:
        return False
    import jax

    if jax.default_backend() != "gpu" or keras.backend.standardize_dtype(query.dtype) != "bfloat16":
        return False
    (queries, d_k), (keys, d_v) = query.shape[-2:], value.shape[-2:]
    return d_k == d_v and d_k % 8 == 0 and d_k <= 128 and queries % 2 == 0 and keys % 2 == 0  # cuDNN's conditions


def fused_attention(query, key, value, mask, factor: float | None = None):
    """The output of `scaled_dot_product_attention`, from one kernel. Shapes: the same."""
    query, key, value = (ops.swapaxes(states, 1, 2) for states in (query, key, value))  # (B, L, H, d), as Keras wants
    if mask is not None:
        mask = ops.logical_and(mask, ops.ones((1, 1, query.shape[1], key.shape[1]), "bool"))  # cuDNN does not broadcast
    output = ops.swapaxes(ops.dot_product_attention(query, key, value, mask=mask, scale=factor), 1, 2)
    if mask is None:
        return output
    # A query that may attend to nothing gets the mean of all values from the kernel, and 0 from the equation.
    return ops.where(ops.any(mask, axis=-1, keepdims=True), output, ops.cast(0.0, output.dtype))
