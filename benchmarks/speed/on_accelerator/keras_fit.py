"""This project's contestant: what a script that imports `keras_transformer` runs, stock `compile` and `fit` on JAX."""

import os
import time

import numpy as np

from benchmarks.speed.on_accelerator.task import WARMUP_STEPS, Contestant, Round, Task


class KerasFit:
    """Builds the model on creation; each `round` is one call of `fit`. The first one compiles."""

    def __init__(self, task: Task, contestant: Contestant):
        os.environ["KERAS_BACKEND"] = "jax"
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # otherwise it takes all memory of a GPU that others use
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {contestant.xla_flags}".strip()
        import keras

        import keras_transformer as kt

        if not contestant.is_attention_fused:
            keras.config.disable_flash_attention()
        keras.utils.set_random_seed(0)
        dtype = {"float32": "float32", "bfloat16": "mixed_bfloat16"}[contestant.precision]
        self.model = kt.Transformer(task.config, dtype=dtype)
        self.model.compile(
            kt.paper_optimizer(task.config.d_model, WARMUP_STEPS),
            loss=kt.LabelSmoothedCrossentropy(task.config.label_smoothing),
            steps_per_execution=contestant.steps_per_execution,
        )
        self.batches = task.batches

    def round(self, steps: int) -> Round:
        """Train for that number of steps. The time is that of the whole call: input, steps and the loss at the end."""
        dataset = repeated(self.batches, steps)
        started = time.perf_counter()
        history = self.model.fit(dataset, epochs=1, shuffle=False, verbose=0)
        seconds = time.perf_counter() - started
        return Round(steps, seconds, history.history["loss"][-1], peak_bytes())


def repeated(batches: list[dict[str, np.ndarray]], steps: int):
    """Return a keras.utils.PyDataset of `steps` elements (inputs, labels): the batches, over and over."""
    import keras

    class Repeated(keras.utils.PyDataset):
        def __len__(self) -> int:
            return steps

        def __getitem__(self, step: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
            inputs = dict(batches[step % len(batches)])
            labels = inputs.pop("labels")
            return inputs, labels

    return Repeated()


def peak_bytes() -> int | None:
    import jax

    return (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use")
