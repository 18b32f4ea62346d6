"""The contestant of this project: its model, its loss, its optimizer, one XLA program a step."""

import itertools
import random
import time

import jax
import jax.numpy as jnp
import keras

from benchmarks.on_accelerator.jax_step import JaxTraining
from benchmarks.on_accelerator.training import Ready, Round

FUSED_CALL = "__cudnn$fmha"  # how a lowered program calls the kernel


class KerasOnJax:
    """Builds and compiles on creation; `round(steps)` trains."""

    def __init__(self, task, batches):
        random.seed(0)  # what Keras seeds initializers from; its own set_random_seed imports TensorFlow where it is
        self.batches = itertools.cycle(jax.device_put([_arrays(batch) for batch in batches]))
        notes = []
        if task.attention == "explicit":
            keras.config.disable_flash_attention()
        started = time.perf_counter()
        try:
            is_fused = self._start(task)
        except jax.errors.JaxRuntimeError as error:
            if task.attention == "explicit":
                raise
            notes.append(f"with fused attention it did not run: {str(error).splitlines()[0]}")
            keras.config.disable_flash_attention()
            is_fused = self._start(task)
        notes.append("attention: cuDNN's fused kernel" if is_fused else "attention: the explicit formula")
        self.ready = Ready("keras_transformer, JAX", time.perf_counter() - started, notes)

    def _start(self, task):
        """Build, compile, do a first step. Returns whether attention is the fused kernel."""
        training = JaxTraining(task.config, task)
        self.state = training.first_state()
        # All that a step changes is given away, and its memory used again
        lowered = jax.jit(training.step, donate_argnums=0).lower(self.state, next(self.batches))
        self.compiled = lowered.compile()
        self.round(1)
        return FUSED_CALL in lowered.as_text()

    def round(self, steps):
        """Train for so many steps. Returns a Round."""
        sums = []
        started = time.perf_counter()
        for _ in range(steps):
            self.state, found = self.compiled(self.state, next(self.batches))
            sums.append(found)
        jax.block_until_ready(self.state)
        seconds = time.perf_counter() - started
        first, last = (float(found.loss / found.tokens) for found in (sums[0], sums[-1]))
        return Round(steps, seconds, first, last, (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use"))


def _arrays(batch):
    return {name: jnp.asarray(ids) for name, ids in batch.items()}
