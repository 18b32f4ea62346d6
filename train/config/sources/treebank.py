"""The section `data` of a treebank."""

import pathlib
import re
from typing import Literal

import pydantic

from keras_transformer.runs.inference import TREES

from ..data import DataSection


def sections_of(text: str) -> set[str]:
    """The sections that a text names: 00 and 02 to 04 of "00,02-04". Raises ValueError for any other text."""
    if not re.fullmatch(r"\d\d(-\d\d)?(, ?\d\d(-\d\d)?)*", text):
        raise ValueError(f"{text!r} names no sections; write two digits each, such as 02-21 or 00,24")
    ranges = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return {f"{section:02}" for ends in ranges for section in range(ends[0], ends[-1] + 1)}


class TreebankData(DataSection):
    """Bracketed trees of the Penn Treebank's format: sentences to parse, and their trees to be written.

    The splits are sections of the Wall Street Journal by file name, as papers have them, or shares that a seed draws:
    of whole files, so that no article is in two splits, or of single trees.
    """

    outputs = TREES
    PATHS = ("files",)
    AFTER_TRAINING = (  # names of languages decide no pair
        *DataSection.AFTER_TRAINING,
        "source_language",
        "target_language",
        "validation_sections",
        "test_sections",
    )

    source: Literal["treebank"]
    source_language: str = "en"
    target_language: str = "trees"
    files: list[str] = pydantic.Field(min_length=1)  # files of trees, folders and .zip files with .mrg files in them
    leaves: Literal["XX", "tags"] = "XX"  # what stands for a word in a tree: the same for all, or its part of speech
    division: Literal["sections", "files", "trees"] = "sections"
    train_sections: str = "02-21"
    validation_sections: str = "22"
    test_sections: str = "23"
    validation_share: float = pydantic.Field(0.05, gt=0, lt=1)  # of all trees; the same for the next
    test_share: float = pydantic.Field(0.1, gt=0, lt=1)
    seed: int = pydantic.Field(1, ge=0)
    shards: Literal[1] = 1
    placeholders: Literal[0] = 0
    clean: None = None  # its rules are about translations

    @pydantic.field_validator("train_sections", "validation_sections", "test_sections")
    @classmethod
    def check_sections(cls, text: str) -> str:
        sections_of(text)
        return text

    @pydantic.model_validator(mode="after")
    def check_division(self) -> "TreebankData":
        sections = [*map(sections_of, (self.train_sections, self.validation_sections, self.test_sections))]
        if len(set.union(*sections)) < sum(map(len, sections)):
            raise ValueError("a section is in two of train_sections, validation_sections and test_sections")
        if self.validation_share + self.test_share >= 1:
            raise ValueError("validation_share and test_share leave nothing for training")
        of_sections = ("train_sections", "validation_sections", "test_sections")
        others = ("validation_share", "test_share", "seed") if self.division == "sections" else of_sections
        for key in others:
            if getattr(self, key) != type(self).model_fields[key].default:
                wanted = '"files" or "trees"' if self.division == "sections" else '"sections"'
                raise ValueError(
                    f'{key} is {getattr(self, key)!r}, but division is "{self.division}", which does not ask for it: '
                    f"leave it out, or set division to {wanted}"
                )
        return self

    @property
    def description(self) -> str:
        return f"trees of {', '.join(self.files)}"

    def paths(self) -> list[pathlib.Path]:
        named = [pathlib.Path(path).expanduser() for path in self.files]
        return [file for path in named for file in (path.rglob("*.mrg") if path.is_dir() else [path])]

    @property
    def unfit_tokenizer(self) -> dict[str, str]:
        return {
            "lowercase": 'data.source is "treebank", whose labels have capitals',
            "dummy_prefix": 'data.source is "treebank", whose trees begin without a space',
        }
