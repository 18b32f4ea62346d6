"""The section `data` of numbers that are spelled out."""

from typing import Literal

import pydantic

from ..data import DataSection

LARGEST = 10**18  # of numbers to spell: the length of a longer range is too large for Python


class NumbersData(DataSection):
    """Numbers spelled out in two languages by num2words: needs no download."""

    source: Literal["numbers"]
    source_language: str = "en"
    target_language: str = "de"
    minimum: int = pydantic.Field(0, ge=-LARGEST)
    maximum: int = pydantic.Field(999_999, le=LARGEST)
    train_pairs: int = pydantic.Field(20_000, ge=1)
    validation_pairs: int = pydantic.Field(500, ge=1)
    test_pairs: int = pydantic.Field(1_000, ge=1)
    seed: int = pydantic.Field(1, ge=0)

    @property
    def description(self) -> str:
        return f"numbers from {self.minimum:,} to {self.maximum:,}, spelled out by num2words"
