"""What test_accelerator.py looks at in a process whose Keras runs on JAX; no test of its own."""

import contextlib
import unittest.mock

import jax
import jax.numpy as jnp
import keras
import numpy as np
from jax._src.cudnn import fused_attention_stablehlo as cudnn
from keras import ops

from benchmarks.on_accelerator.jax_step import JaxTraining
from benchmarks.on_accelerator.keras_jax import FUSED_CALL, KerasOnJax
from benchmarks.on_accelerator.training import Task
from keras_transformer.config import TransformerConfig, base
from keras_transformer.layers import attention
from keras_transformer.layers.fused_attention import fused_attention, has_fused_kernel
from keras_transformer.masks import causal_segment_mask

FLAT = TransformerConfig(vocab_size=16384, encoder_layers=1, decoder_layers=1, d_model=16, d_ff=16, num_heads=2)
SEGMENTS = np.array([[1, 1, 1, 2, 2, 0], [1, 2, 2, 2, 2, 2]])
patch = unittest.mock.patch.object


def training(config, precision="float32"):
    return JaxTraining(config, Task("", 0, 0, "fused", warmup_steps=20, precision=precision))


def batch_of_ones(rows, length):
    """A batch without padding, one sentence a row."""
    names = "source_ids", "source_segments", "target_ids", "target_segments", "labels"
    return {name: jnp.ones((rows, length), "int32") for name in names}


def compiled(config, rows, length, precision="float32"):
    model = training(config, precision)
    state = model.first_state()
    return jax.jit(model.step, donate_argnums=0).lower(state, batch_of_ones(rows, length)).compile(), state


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
        return has_fused_kernel(states, states, states)

    found = {"taken_without_a_gpu": taken()}
    with as_on_a_gpu():
        found |= {
            "taken_in_bfloat16": taken(),
            "taken_in_float16": taken("float16"),
            "taken_in_float32": taken("float32"),
        }
        found |= {"taken_for_one_query": taken(length=1), "taken_for_width_12": taken(width=12)}
        keras.config.disable_flash_attention()
        found["taken_when_disabled"] = taken()
        keras.config.enable_flash_attention()
    return found


def kernel_calls():
    """How often a step of base's widths on 98 rows of 256 calls cuDNN, lowered for a GPU: forward and backward."""
    model = training(base.replace(encoder_layers=1, decoder_layers=1, vocab_size=64), "mixed_bfloat16")
    batch = batch_of_ones(98, 256)
    with as_on_a_gpu():
        lowered = jax.jit(model.step).trace(model.first_state(), batch).lower(lowering_platforms=("cuda",))
    text = lowered.as_text()
    backward = text.count(f"{FUSED_CALL}ScaleBiasSoftmaxBackward")
    return [text.count(f"{FUSED_CALL}ScaleBiasSoftmax") - backward, backward]


def holds_attention_weights(is_fused):
    """Whether the compiled step has an array of a weight for each head, query and key."""
    stand_in = unittest.mock.Mock(side_effect=lambda query, key, value, **_: value)
    with (
        patch(attention, "has_fused_kernel", return_value=is_fused),
        patch(attention.ops, "dot_product_attention", stand_in),
    ):
        program, _ = compiled(FLAT.replace(vocab_size=40, num_heads=2), 3, 10)
    text = program.as_text()
    return "[3,2,10,10]" in text or "[6,10,10]" in text


def memory():
    """Bytes of a step's intermediate results over bytes of all logits, and of what it gives away over its state's."""
    found = {}
    for precision, bytes_each in (("float32", 4), ("mixed_bfloat16", 2)):
        program, state = compiled(FLAT, 8, 64, precision)
        sizes = program.memory_analysis()
        found[f"{precision}_temporary"] = sizes.temp_size_in_bytes / (8 * 64 * FLAT.vocab_size * bytes_each)
        found[f"{precision}_reused"] = sizes.alias_size_in_bytes / sum(x.nbytes for x in jax.tree.leaves(state))
    return found


def notes_where_the_kernel_fails():
    """What the contestant says on a chip whose cuDNN has no such kernel after all."""
    failure = jax.errors.JaxRuntimeError("no engine\nand much more")
    with patch(KerasOnJax, "_start", side_effect=[failure, False]):
        notes = KerasOnJax(Task("tiny", 0, 0, "fused", warmup_steps=20), []).ready.notes
    is_disabled = keras.config.is_flash_attention_enabled() is False
    keras.config.enable_flash_attention()
    return [*notes, f"disabled: {is_disabled}"]


def losses(config, weights, batches):
    """Means of the loss over the steps of these batches, from these weights, by their paths."""
    model = training(config)
    for variable in model.weights:
        variable.assign(weights.pop(variable.path))
    if weights:
        raise ValueError(f"These weights have no place: {sorted(weights)}")
    state, step, found = model.first_state(), jax.jit(model.step), []
    for batch in batches:
        state, sums = step(state, batch)
        found.append(float(sums.loss / sums.tokens))
    return found


def main(given, path):
    """Write all of the above to `path`; `given` is the .npz with what `losses` needs."""
    with np.load(given) as arrays:
        weights = {name.removeprefix("weight "): arrays[name] for name in arrays.files if name.startswith("weight ")}
        steps = range(int(arrays["steps"]))
        batches = [{n.split()[2]: arrays[n] for n in arrays.files if n.startswith(f"batch {s} ")} for s in steps]
        config = TransformerConfig.from_json(str(arrays["config"]))
    np.savez(
        path,
        losses=losses(config, weights, batches),
        kernel_calls=kernel_calls(),
        notes=notes_where_the_kernel_fails(),
        weights_if_explicit=holds_attention_weights(False),
        weights_if_fused=holds_attention_weights(True),
        **kernel_is_taken(),
        **memory(),
        **attention_both_ways(),
    )
