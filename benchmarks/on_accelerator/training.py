"""The task of a contestant and its answers: plain values, since each contestant has a process of its own."""

import dataclasses
from typing import TYPE_CHECKING

from keras_transformer.config import TransformerConfig, preset

if TYPE_CHECKING:
    from train.config.training import TrainingConfig


@dataclasses.dataclass(frozen=True)
class Task:
    """Train one model of the paper as in its section 5 (Vaswani et al. 2017)."""

    size: str  # the name of a preset
    tokens: int  # source positions per batch, and as many target positions
    row_length: int
    attention: str  # "fused": the backend's kernel if it has one; "explicit": the formula
    warmup_steps: int  # of the learning rate, as in train/config/training.py
    learning_rate_factor: float = 1.0
    precision: str = "mixed_bfloat16"  # a Keras policy; torch's autocast uses the same 16 bits

    @property
    def config(self) -> TransformerConfig:
        return preset(self.size)

    @property
    def training(self) -> "TrainingConfig":
        """What train/ calls it; everything else there has its default."""
        from train.config.training import TrainingConfig  # here, since a contestant without this step needs none of it

        return TrainingConfig(
            warmup_steps=self.warmup_steps, learning_rate_factor=self.learning_rate_factor, precision=self.precision
        )


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
