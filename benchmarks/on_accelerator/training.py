"""What a contestant is asked to do, and what it answers: plain values, since each lives in a process of its own."""

import dataclasses

from keras_transformer.config import preset


@dataclasses.dataclass(frozen=True)
class Task:
    """Train one model of the paper as it was trained (Vaswani et al. 2017, section 5)."""

    size: str  # a preset by name
    tokens: int  # source positions of a batch, and as many target positions
    row_length: int
    attention: str  # "fused": the backend's kernel where it has one; "explicit": the formula
    warmup_steps: int  # of the learning rate, as in train/config.py
    learning_rate_factor: float = 1.0
    precision: str = "mixed_bfloat16"  # a Keras policy; torch's autocast takes the same 16 bits

    @property
    def config(self):
        return preset(self.size)


@dataclasses.dataclass(frozen=True)
class Ready:
    """A contestant that has compiled its step and done it once."""

    name: str
    seconds: float  # from the built model to the end of the first step
    notes: list


@dataclasses.dataclass(frozen=True)
class Round:
    """Some steps one after the other, timed as one."""

    steps: int
    seconds: float
    first_loss: float  # nats a token, of the first step
    last_loss: float
    peak_bytes: int | None  # the most memory so far; None where the device does not tell
