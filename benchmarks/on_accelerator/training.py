"""The task of a contestant and its answers: plain values, since each contestant has a process of its own."""

import dataclasses

from keras_transformer.config import TransformerConfig, preset


@dataclasses.dataclass(frozen=True)
class Task:
    """Train one model of the paper as in its section 5 (Vaswani et al. 2017)."""

    size: str  # the name of a preset
    tokens: int  # source positions per batch, and as many target positions
    row_length: int
    attention: str  # "fused": the backend's kernel if it has one; "explicit": the formula
    warmup_steps: int  # of the learning rate, as in train/config.py
    learning_rate_factor: float = 1.0
    precision: str = "mixed_bfloat16"  # a Keras policy; torch's autocast uses the same 16 bits
    ema_decay: float | None = None  # no moving average of the weights
    schedule: str = "paper"
    clip_norm: float | None = None  # no limit to the norm of the gradients

    @property
    def config(self) -> TransformerConfig:
        return preset(self.size)


@dataclasses.dataclass(frozen=True)
class Ready:
    """A contestant has compiled its step and run it once."""

    name: str
    seconds: float  # from the built model to the end of the first step
    notes: list[str]


@dataclasses.dataclass(frozen=True)
class Round:
    """Several steps, timed together."""

    steps: int
    seconds: float
    first_loss: float  # nats per token, of the first step
    last_loss: float
    peak_bytes: int | None  # the most memory in use so far; None if the device does not report it
