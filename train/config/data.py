"""The section `data` of a run configuration: what it has whatever its source. Each source has a file in sources/."""

import abc
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pydantic

from keras_transformer.pieces.language_marks import NO_CODES, NO_LANGUAGES, SIDES, Codes, Languages
from keras_transformer.pieces.languages import CODE
from keras_transformer.runs.inference import TEXT

from .cleaning import CleaningConfig
from .section import Section


class DataSection(Section):
    """Where sentence pairs come from.

    The source "name" is two files, which nothing else lists: `train/config/sources/name.py` has its section, a subclass
    of this one with `source: Literal["name"]`, and `train/data/sources/name.py` has `read_corpus`, which reads it.
    """

    AFTER_TRAINING: ClassVar[tuple[str, ...]] = ("licence",)
    outputs: ClassVar[str] = TEXT  # what a model of these pairs writes

    source: str
    licence: str | None = None  # of the text, for report.md: "CC-BY-4.0"
    source_language: str
    target_language: str
    shards: int = pydantic.Field(1, ge=1)  # parts of the training text that workers divide among them
    placeholders: float = pydantic.Field(0.0, ge=0, le=1)  # share of the pairs whose spans are replaced, per epoch
    clean: CleaningConfig | None = None  # which training pairs are left out; None: none

    @property
    @abc.abstractmethod
    def description(self) -> str:
        """The training text in words, for report.md."""

    @property
    def languages(self) -> str:
        """The direction in words: "en to de"."""
        return f"{self.source_language} to {self.target_language}"

    @property
    def told_languages(self) -> Languages:
        """Which languages a model of these pairs reads and writes, and how it is told them."""
        pair = self.source_language, self.target_language
        if self.tags or self.outputs != TEXT or not all(CODE.fullmatch(code) for code in pair):
            return NO_LANGUAGES
        return Languages({pair[0]: ""}, {pair[1]: ""})

    @property
    def codes(self) -> Codes:
        """The languages of its pairs, "" for one that is not named."""
        if self.outputs != TEXT:
            return NO_CODES
        source, target = ("" if name in SIDES else name for name in (self.source_language, self.target_language))
        return source, target

    def all_codes(self) -> Sequence[Codes]:
        """The languages of the pairs of every split."""
        return [self.codes]

    def told_by(self, languages: Languages) -> "DataSection":
        """The same section for a model that is told its languages so already: no text has a tag for one of them."""
        return self

    def paths(self) -> list[pathlib.Path]:
        """All files that are read, of every split, those in folders included."""
        return []

    @property
    def tags(self) -> tuple[str, ...]:
        """The pieces that stand before source sentences."""
        return ()

    @property
    def unfit_tokenizer(self) -> dict[str, str]:
        """Keys of the section `tokenizer` that would change the symbols of this text if they were true: why."""
        return {}

    @classmethod
    def beside_paths(cls, values: Mapping[str, Any], is_told: bool = False) -> dict[str, list[str]]:
        """What keys of PATHS say beside where files are, such as tags: by key, a text per file, "" if it has none.

        values: of a section as TOML has it. is_told: whether pieces tell the model the languages of a pair. If a file
        has a text, all workers must have the same; and once a run is done, neither the texts nor their number may
        change.
        """
        return {}

    def offline(self) -> "DataSection":
        """The same section, of which nothing is downloaded."""
        return self
