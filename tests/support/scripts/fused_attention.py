"""What test_fused_attention.py looks at in a process whose Keras runs on JAX; no test of its own."""

import contextlib
import unittest.mock

import jax
import jax.numpy as jnp
import keras
import numpy as np
from jax._src.cudnn import fused_attention_stablehlo as cudnn
from keras import ops

from keras_transformer.config import TransformerConfig, base
from keras_transformer.layers import attention
from keras_transformer.layers.fused_attention import fused_attention, has_fused_kernel
from keras_transformer.layers.positions import RotaryPositions
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.masks import causal_segment_mask
from keras_transformer.model import Transformer

ONE_BLOCK = TransformerConfig(vocab_size=40, encoder_layers=1, decoder_layers=1, d_model=16, d_ff=16, num_heads=2)
FUSED_CALL = "__cudnn$fmha"  # the kernel's name in a lowered program
SEGMENTS = np.array([[1, 1, 1, 2, 2, 0], [1, 2, 2, 2, 2, 2]])
patch = unittest.mock.patch.object


def gradient(config, rows, length, dtype="float32"):
    """A function of weights to their gradients for a batch without padding, one sentence per row; and the weights."""
    model, loss = Transformer(config, dtype=dtype), LabelSmoothedCrossentropy()
    ones = jnp.ones((rows, length), "int32")
    inputs = {name: ones for name in model.input}
    others = [variable.value for variable in model.non_trainable_variables]

    def loss_of(weights):
        logits, _ = model.stateless_call(weights, others, inputs, training=True)
        return loss(ones, logits)

    return jax.jit(jax.grad(loss_of)), [variable.value for variable in model.trainable_variables]


def attention_both_ways():
    """Outputs (B, H, Q, d) and gradients by query, key and value of the formula, and of the fused kernel's stand-in.

    Without a GPU, Keras answers the same call with JAX's own formula: this checks all that surrounds the kernel.
    """
    query, key, value, probe = jax.random.normal(jax.random.key(0), (4, 2, 2, 6, 8), jnp.bfloat16)
    mask = ops.expand_dims(causal_segment_mask(SEGMENTS), 1)

    def explicit(query, key, value):
        return attention.scaled_dot_product_attention(query, key, value, mask)[0]

    def fused(query, key, value):
        return fused_attention(query, key, value, mask)

    found = {}
    for name, attend in (("explicit", explicit), ("fused", fused)):

        def probed(query, key, value, attend=attend):
            output = attend(query, key, value)
            return (output * probe).astype("float32").sum(), output

        gradients, output = jax.grad(probed, argnums=(0, 1, 2), has_aux=True)(query, key, value)
        found |= {f"{name}_{n}": np.asarray(array, "float32") for n, array in enumerate([output, *gradients])}
    return found


@contextlib.contextmanager
def as_on_a_gpu():
    """JAX and Keras take this machine for one with a Hopper GPU and cuDNN 9.19, as far as tracing goes."""
    with (
        patch(jax, "default_backend", return_value="gpu"),
        patch(cudnn, "check_cudnn_version", return_value=91900),
        patch(cudnn, "check_compute_capability", return_value=True),
        patch(cudnn, "is_cuda_compute_capability_equal", return_value=False),
    ):
        yield


def kernel_is_taken():
    """Whether attention between such states takes the fused kernel on a GPU."""

    def taken(dtype="bfloat16", length=4, width=8):
        states = jnp.zeros((1, 1, length, width), dtype)
        return has_fused_kernel(states, states)

    found = {"taken_without_a_gpu": taken()}
    with as_on_a_gpu():
        found |= {
            "taken_in_bfloat16": taken(),
            "taken_in_float16": taken("float16"),
            "taken_in_float32": taken("float32"),
        }
        found |= {"taken_for_one_query": taken(length=1), "taken_for_width_12": taken(width=12)}
        found |= {"taken_for_width_128": taken(width=128), "taken_for_width_136": taken(width=136)}
        keras.config.disable_flash_attention()
        found["taken_when_disabled"] = taken()
        keras.config.enable_flash_attention()
    return found


def kernel_calls(positions="sinusoidal"):
    """How often base's gradient on 98 rows of 256 calls cuDNN, lowered for a GPU: forward and backward."""
    with as_on_a_gpu():
        config = base.replace(encoder_layers=1, decoder_layers=1, vocab_size=64, positions=positions)
        function, weights = gradient(config, 98, 256, "mixed_bfloat16")
        text = function.trace(weights).lower(lowering_platforms=("cuda",)).as_text()
    backward = text.count(f"{FUSED_CALL}ScaleBiasSoftmaxBackward")
    return [text.count(f"{FUSED_CALL}ScaleBiasSoftmax") - backward, backward]


def rotated_both_ways():
    """Outputs of one attention with rotated queries and keys: by the kernel's stand-in, and by the formula."""
    query = jax.random.normal(jax.random.key(1), (2, 6, 16), jnp.bfloat16)
    layer = attention.MultiHeadAttention(2, 8, dtype="bfloat16")
    rotation = RotaryPositions(8)(jnp.arange(6)[None])
    explicit = layer(query, query, causal_segment_mask(SEGMENTS), rotation=rotation)[0]
    with patch(attention, "has_fused_kernel", return_value=True):
        fused = layer(query, query, causal_segment_mask(SEGMENTS), rotation=rotation)[0]
        plain = layer(query, query, causal_segment_mask(SEGMENTS))[0]
    return {f"rotated_{n}": np.asarray(each, "float32") for n, each in enumerate((explicit, fused, plain))}


def holds_attention_weights(is_fused):
    """Whether the compiled gradient has an array of a weight for each head, query and key."""
    stand_in = unittest.mock.Mock(side_effect=lambda query, key, value, **_: value)
    with (
        patch(attention, "has_fused_kernel", return_value=is_fused),
        patch(attention.ops, "dot_product_attention", stand_in),
    ):
        function, weights = gradient(ONE_BLOCK, 3, 10)
        text = function.lower(weights).compile().as_text()
    return "[3,2,10,10]" in text or "[6,10,10]" in text


def main(path):
    """Write all of the above to `path`, an .npz file."""
    np.savez(
        path,
        **{f"kernel_calls_{positions}": kernel_calls(positions) for positions in ("sinusoidal", "rotary", "alibi")},
        **rotated_both_ways(),
        weights_if_explicit=holds_attention_weights(False),
        weights_if_fused=holds_attention_weights(True),
        **kernel_is_taken(),
        **attention_both_ways(),
    )
