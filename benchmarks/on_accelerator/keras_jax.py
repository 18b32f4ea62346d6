"""This project's contestant: its model, loss and optimizer, with one XLA program per step."""

import itertools
import random
import time

import jax
import jax.numpy as jnp
import keras
import numpy as np

from benchmarks.on_accelerator.jax_step import JaxTraining
from benchmarks.on_accelerator.training import Ready, Round, Task

FUSED_CALL = "__cudnn$fmha"  # the kernel's name in a lowered program


class KerasOnJax:
    """Builds and compiles on creation; `round(steps)` trains."""

    def __init__(self, task: Task, batches: list[dict[str, np.ndarray]]):
        random.seed(0)  # seeds Keras' initializers; keras.utils.set_random_seed would import TensorFlow
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

    def _start(self, task: Task) -> bool:
        """Build, compile and run a first step. Returns whether attention uses the fused kernel."""
        training = JaxTraining(task.config, task)
        self.state = training.first_state()
        # the step may overwrite the memory of the state that it is given
        lowered = jax.jit(training.step, donate_argnums=0).lower(self.state, next(self.batches))
        self.compiled = lowered.compile()
        self.round(1)
        return FUSED_CALL in lowered.as_text()

    def round(self, steps: int) -> Round:
        """Train for that number of steps."""
        sums = []
        started = time.perf_counter()
        for _ in range(steps):
            self.state, found = self.compiled(self.state, next(self.batches))
            sums.append(found)
        jax.block_until_ready(self.state)
        seconds = time.perf_counter() - started
        first, last = (float(found.loss / found.tokens) for found in (sums[0], sums[-1]))
        return Round(steps, seconds, first, last, (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use"))


def _arrays(batch: dict[str, np.ndarray]) -> dict[str, jax.Array]:
    return {name: jnp.asarray(ids) for name, ids in batch.items()}
