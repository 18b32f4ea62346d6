"""The table `training.augment` of a run configuration: how training text is changed in every epoch."""

from collections.abc import Callable

import pydantic

from keras_transformer.ground.errors import ConfigError
from keras_transformer.runs.inference import TREES

from .data import DataSection
from .section import Section
from .tokenizer import TokenizerConfig

OF_CASE = ("uppercase", "title_case")


class AugmentationConfig(Section):
    """Shares of the training pairs that are changed in one way each, drawn anew for every epoch."""

    uppercase: float = pydantic.Field(0.0, ge=0, le=1)  # both sides in capitals
    title_case: float = pydantic.Field(0.0, ge=0, le=1)  # a source whose words begin with capitals
    punctuation: float = pydantic.Field(0.0, ge=0, le=1)  # a source that lacks a punctuation mark, or has one twice
    typing: float = pydantic.Field(0.0, ge=0, le=1)  # a source with one typing mistake
    joined: float = pydantic.Field(0.0, ge=0, le=1)  # a pair that is followed by another one on both sides

    @pydantic.model_validator(mode="after")
    def check_sum(self) -> "AugmentationConfig":
        shares = self.model_dump()
        if sum(shares.values()) > 1:
            listed = ", ".join(f"{name} {share:g}" for name, share in shares.items() if share)
            raise ValueError(f"the shares are more than all pairs together: {listed}")
        return self


def check_augmentation(
    augment: AugmentationConfig | None, tokenizer: TokenizerConfig, data: DataSection, where: Callable[[str], str]
) -> None:
    """Raises ConfigError for changes of trees, and for changes of case that a tokenizer in lower case undoes.

    where: from a key to the file or option that set it.
    """
    if augment is None:
        return
    if data.outputs == TREES:
        raise ConfigError(
            f"{where('training.augment')}: training.augment changes sentences and their translations, and data.source "
            f'is "{data.source}": leave it out.'
        )
    for key in OF_CASE:
        if tokenizer.lowercase and getattr(augment, key):
            raise ConfigError(
                f"{where(f'training.augment.{key}')}: training.augment.{key} has no effect, because "
                "tokenizer.lowercase is true: leave one of them out."
            )
