"""A block at one position of several hypotheses computes what its layers compute."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers.attention import MultiHeadAttention, scaled_dot_product_attention
from keras_transformer.search.incremental_blocks import attend_to_memory, bias_of_mask, biased_attention, project_memory
from tests.support.models import assert_close, normal, randomise


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_biased_attention_is_attention_under_a_mask_also_beyond_the_largest_float16(dtype):
    query, key, value = (ops.cast(normal(1, 2, n, 8, seed=n), dtype) for n in (3, 4, 5))
    key, value, mask = key[:, :, :4], value[:, :, :4], np.array([[[True, True, False, True]] * 3])
    for scale in (1.0, 300.0):
        bias = bias_of_mask(ops.convert_to_tensor(mask))
        output, weights = biased_attention(scale * query, scale * key, value, bias)
        scaled = scale * query * ops.cast(8**0.5, dtype)
        expected = scaled_dot_product_attention(scaled, scale * key, value, mask[:, None])
        assert keras.backend.standardize_dtype(weights.dtype) == "float32"
        for ours, theirs in zip((output, weights), expected, strict=True):
            assert_close(
                ops.cast(ours, "float32"), ops.cast(theirs, "float32"), atol=0.02 if dtype != "float32" else 1e-5
            )


def test_attending_to_a_projected_memory_is_the_layer_on_that_memory():
    hypotheses = 3
    queries, memory = normal(2, hypotheses, 8), normal(2, 6, 8, seed=1)
    mask = np.ones((2, 1, 6), bool)
    mask[0, 0, 4:] = False
    layer = MultiHeadAttention(2, 4, value_dim=3)
    layer.build(queries.shape, memory.shape)
    output, weights = randomise(layer)(queries, memory, mask)
    projected, bias = project_memory(layer, ops.convert_to_tensor(memory)), bias_of_mask(mask)
    output_of_rows, weights_of_rows = attend_to_memory(layer, queries.reshape(-1, 8), projected, bias, hypotheses)
    assert_close(ops.reshape(output_of_rows, output.shape), output)
    assert_close(weights_of_rows, weights)
