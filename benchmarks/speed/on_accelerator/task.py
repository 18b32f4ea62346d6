"""What the contestants train, and the list of contestants: plain values, which pass from process to process."""

from typing import NamedTuple

import numpy as np

from keras_transformer.config import TransformerConfig

WARMUP_STEPS = 4000  # of the learning rate (Vaswani et al. 2017, section 5.3)


class Task(NamedTuple):
    """A model and the batches that it is trained on, over and over. train/data/batches.py describes a batch."""

    config: TransformerConfig
    batches: list[dict[str, np.ndarray]]


class Contestant(NamedTuple):
    """One way to train. `products`: how its float32 or bfloat16 matrices are multiplied, a key of chip.PRODUCTS."""

    label: str
    precision: str  # "float32" or "bfloat16"
    products: str
    is_attention_fused: bool = True  # Keras only: False after keras.config.disable_flash_attention()
    steps_per_execution: int = 1  # Keras only: an argument of `compile`
    xla_flags: str = ""  # Keras only: added to the environment variable XLA_FLAGS

    @property
    def framework(self) -> str:
        return "torch" if self.label.startswith("torch") else "keras"


KERAS, TORCH = "kt.Transformer.fit, JAX", "torch.nn.Transformer, torch.compile"
CUBLAS = "--xla_gpu_enable_triton_gemm=false --xla_gpu_dot_merger_threshold_mb=0"
CONTESTANTS = {
    "keras_bfloat16": Contestant(KERAS, "bfloat16", "bfloat16"),
    "torch_bfloat16": Contestant(TORCH, "bfloat16", "bfloat16"),
    "keras_bfloat16_unfused": Contestant(f"{KERAS}, flash attention disabled", "bfloat16", "bfloat16", False),
    "keras_bfloat16_cublas": Contestant(f"{KERAS}, cuBLAS alone", "bfloat16", "bfloat16", xla_flags=CUBLAS),
    "keras_bfloat16_10_steps": Contestant(f"{KERAS}, steps_per_execution=10", "bfloat16", "bfloat16", True, 10),
    "keras_float32": Contestant(KERAS, "float32", "TF32"),
    "torch_tf32": Contestant(f'{TORCH}, matmul precision "high"', "float32", "TF32"),
    "torch_float32": Contestant(TORCH, "float32", "float32"),
}
USUAL = [name for name in CONTESTANTS if not name.endswith("_steps")]  # the default of --contestants


class Round(NamedTuple):
    """Several steps, timed together."""

    steps: int
    seconds: float
    loss: float  # label-smoothed, in nats per token: the mean over the steps
    peak_bytes: int | None  # the most memory in use so far; None if the device does not report it
