"""The table `data.clean` of a run configuration: which sentence pairs are not trained on."""

from typing import Any

import pydantic

from keras_transformer.text.cleaning import known_scripts

from .section import Section


class CleaningConfig(Section):
    """The rules of `keras_transformer.text.cleaning` that are on. Each key has a row of its table RULES."""

    identical: bool = False  # a target that is its source
    length_ratio: float | None = pydantic.Field(None, gt=1)  # most characters of a side per character of the other
    longest_word: int | None = pydantic.Field(None, ge=1)  # characters
    markup: bool = False  # a side that is tags, links and placeholders more than text
    source_scripts: list[str] | None = pydantic.Field(None, min_length=1)  # of half of its letters: ["LATIN"]
    target_scripts: list[str] | None = pydantic.Field(None, min_length=1)
    numbers: bool = False  # sides with different numbers in digits
    languages: bool = False  # a side of another language than data.source_language or data.target_language
    duplicates: bool = False  # a pair that came before in the same text, or shard of it

    @pydantic.field_validator("source_scripts", "target_scripts")
    @classmethod
    def check_scripts(cls, scripts: list[str] | None) -> list[str] | None:
        if unknown := sorted(set(scripts or ()) - known_scripts()):
            raise ValueError(f"{unknown[0]!r} is no script; write the first word of its letters' names, as in Unicode")
        return scripts

    def settings(self) -> dict[str, Any]:
        """The keys that are on, with their values."""
        return {key: value for key, value in self.model_dump().items() if value not in (None, False)}
