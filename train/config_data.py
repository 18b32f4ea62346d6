"""The section `data` of a run configuration: where sentence pairs come from."""

from typing import Annotated, Any, Literal

import pydantic


class Section(pydantic.BaseModel):
    """A table of the TOML file. Unknown keys, other types ("100" is no number), infinities and NaN are errors."""

    model_config = pydantic.ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, protected_namespaces=()
    )


class NumbersData(Section):
    """Numbers spelled out in two languages by num2words: needs no download."""

    source: Literal["numbers"]
    licence: str | None = None  # of the text, for report.md: "CC-BY-4.0"
    source_language: str = "en"
    target_language: str = "de"
    minimum: int = 0
    maximum: int = 999_999
    train_pairs: int = pydantic.Field(20_000, ge=1)
    validation_pairs: int = pydantic.Field(500, ge=1)
    test_pairs: int = pydantic.Field(1_000, ge=1)
    seed: int = pydantic.Field(1, ge=0)
    shards: int = pydantic.Field(1, ge=1)  # as in FilesData


class FilesData(Section):
    """Line-aligned text files, or TSV files with source and target in the first two columns; `.gz` is decompressed.

    Each split is a list of entries. An entry is [source file, target file], or one TSV file.
    """

    source: Literal["files"]
    licence: str | None = None  # of the text, for report.md: "CC-BY-4.0"
    source_language: str = "source"
    target_language: str = "target"
    train: list[list[str] | str] = pydantic.Field(min_length=1)
    validation: list[list[str] | str] = pydantic.Field(min_length=1)
    test: list[list[str] | str] = []
    train_pairs: int | None = pydantic.Field(None, ge=1)  # the first so many of them; None: all
    shards: int = pydantic.Field(1, ge=1)  # parts that workers divide among them; entry i belongs to part i mod shards

    @pydantic.field_validator("train", "validation", "test", mode="before")
    @classmethod
    def check_entries(cls, entries: Any) -> Any:
        def is_entry(entry: Any) -> bool:
            return isinstance(entry, str) or isinstance(entry, list) and all(isinstance(path, str) for path in entry)

        if not isinstance(entries, list) or not all(map(is_entry, entries)):
            raise ValueError(f"expected a list of [source file, target file] or of TSV files, found {entries!r}")
        return entries

    @pydantic.model_validator(mode="after")
    def check_train_pairs(self) -> "FilesData":
        if self.train_pairs and self.shards > 1:
            raise ValueError(f"train_pairs {self.train_pairs} needs shards = 1: it counts the pairs of the whole text")
        return self


class TfdsData(Section):
    """A translation set of TensorFlow Datasets, by name and direction."""

    source: Literal["tfds"]
    licence: str | None = None  # of the text, for report.md: "CC-BY-4.0"
    name: str  # "wmt14_translate/de-en", "ted_hrlr_translate/pt_to_en"
    source_language: str
    target_language: str
    data_dir: str | None = None
    train_split: str = "train"
    validation_split: str = "validation"
    test_split: str = "test"
    download: bool = True
    shards: int = pydantic.Field(1, ge=1)  # even parts of train_split that workers divide among them


Data = Annotated[NumbersData | FilesData | TfdsData, pydantic.Field(discriminator="source")]
