"""The section `data` of a run configuration: where sentence pairs come from."""

import itertools
import re
from typing import Annotated, Any, ClassVar, Literal

import pydantic

from keras_transformer.inference import TEXT, TREES
from keras_transformer.tokens import OWN_PIECE

from .section import Section

LARGEST = 10**18  # of numbers to spell: the length of a longer range is too large for Python


class NumbersData(Section):
    """Numbers spelled out in two languages by num2words: needs no download."""

    outputs: ClassVar[str] = TEXT  # what a model of these pairs writes
    source: Literal["numbers"]
    licence: str | None = None  # of the text, for report.md: "CC-BY-4.0"
    source_language: str = "en"
    target_language: str = "de"
    minimum: int = pydantic.Field(0, ge=-LARGEST)
    maximum: int = pydantic.Field(999_999, le=LARGEST)
    train_pairs: int = pydantic.Field(20_000, ge=1)
    validation_pairs: int = pydantic.Field(500, ge=1)
    test_pairs: int = pydantic.Field(1_000, ge=1)
    seed: int = pydantic.Field(1, ge=0)
    shards: int = pydantic.Field(1, ge=1)  # as in FilesData


class FilesEntry(Section):
    """An entry of text files with options, as a table: {files = ["a.en", "a.de"], tag = "<2de>", weight = 2}."""

    files: list[str] | str
    tag: str = ""  # stands before every source sentence: a piece of the tokenizer that marks a language or an origin
    weight: float | None = pydantic.Field(None, gt=0)  # share of the training pairs of an epoch; None: 1 if others have

    @pydantic.field_validator("tag")
    @classmethod
    def check_tag(cls, tag: str) -> str:
        if any(character.isspace() or character == "\u2581" for character in tag):
            raise ValueError(f"{tag!r} has a space in it; a tag is one piece, such as <2de>")
        if OWN_PIECE.fullmatch(tag):
            raise ValueError(f"{tag!r} is a piece that every tokenizer has for itself; choose another, such as <2de>")
        return tag


def kind_of_entry(entry: Any) -> str:
    """Return which kind of entry a value is: for messages, before it is checked."""
    return "pair" if isinstance(entry, list) else "tsv" if isinstance(entry, str) else "table"


Entry = Annotated[
    Annotated[list[str], pydantic.Tag("pair")]
    | Annotated[str, pydantic.Tag("tsv")]
    | Annotated[FilesEntry, pydantic.Tag("table")],
    pydantic.Discriminator(kind_of_entry),
]


class FilesData(Section):
    """Line-aligned text files, or TSV files with source and target in the first two columns; `.gz` is decompressed.

    Each split is a list of entries. An entry is [source file, target file], or one TSV file, or a FilesEntry.
    """

    outputs: ClassVar[str] = TEXT  # what a model of these pairs writes
    source: Literal["files"]
    licence: str | None = None  # of the text, for report.md: "CC-BY-4.0"
    source_language: str = "source"
    target_language: str = "target"
    train: list[Entry] = pydantic.Field(min_length=1)
    validation: list[Entry] = pydantic.Field(min_length=1)
    test: list[Entry] = []
    train_pairs: int | None = pydantic.Field(None, ge=1)  # the first so many of them; None: all
    shards: int = pydantic.Field(1, ge=1)  # parts that workers divide among them; entry i belongs to part i mod shards

    @pydantic.field_validator("train", "validation", "test", mode="before")
    @classmethod
    def check_entries(cls, entries: Any) -> Any:
        def is_entry(entry: Any) -> bool:
            if isinstance(entry, list):
                return all(isinstance(path, str) for path in entry)
            return isinstance(entry, str | dict | FilesEntry)

        if not isinstance(entries, list) or not all(map(is_entry, entries)):
            raise ValueError(f"expected a list of [source file, target file] or of TSV files, found {entries!r}")
        return entries

    @pydantic.model_validator(mode="after")
    def check_train_pairs(self) -> "FilesData":
        if self.train_pairs and self.shards > 1:
            raise ValueError(f"train_pairs {self.train_pairs} needs shards = 1: it counts the pairs of the whole text")
        if self.train_pairs and any(entry.weight is not None for entry in self.entries("train")):
            raise ValueError(
                f"train_pairs {self.train_pairs} and a weight of an entry do not go together: leave one out"
            )
        return self

    @pydantic.field_validator("validation", "test")
    @classmethod
    def check_weights(cls, entries: list[Entry]) -> list[Entry]:
        if any(isinstance(entry, FilesEntry) and entry.weight is not None for entry in entries):
            raise ValueError("an entry has a weight; only entries of data.train have")
        return entries

    def entries(self, split: str) -> list[FilesEntry]:
        """The entries of "train", "validation" or "test", each as a FilesEntry."""
        entries = getattr(self, split)
        return [entry if isinstance(entry, FilesEntry) else FilesEntry(files=entry) for entry in entries]

    @property
    def paths(self) -> list[str]:
        """All files, of every split."""
        entries = itertools.chain.from_iterable(map(self.entries, ("train", "validation", "test")))
        return [path for one in entries for path in ([one.files] if isinstance(one.files, str) else one.files)]

    @property
    def tags(self) -> tuple[str, ...]:
        """All tags, each once, in the order of the entries."""
        entries = itertools.chain.from_iterable(map(self.entries, ("train", "validation", "test")))
        return tuple(dict.fromkeys(entry.tag for entry in entries if entry.tag))


class TfdsData(Section):
    """A translation set of TensorFlow Datasets, by name and direction."""

    outputs: ClassVar[str] = TEXT  # what a model of these pairs writes
    source: Literal["tfds"]
    licence: str | None = None  # of the text, for report.md: "CC-BY-4.0"
    name: str  # "wmt14_translate/de-en", "ted_hrlr_translate/pt_to_en"
    source_language: str
    target_language: str
    data_dir: str | None = None  # TFDS's folder, or one of LANGUAGE.SPLIT.txt files, such as en.train.txt
    train_split: str = "train"
    validation_split: str = "validation"
    test_split: str = "test"  # "": none
    download: bool = True
    shards: int = pydantic.Field(1, ge=1)  # even parts of train_split that workers divide among them


def sections_of(text: str) -> set[str]:
    """The sections that a text names: 00 and 02 to 04 of "00,02-04". Raises ValueError for any other text."""
    if not re.fullmatch(r"\d\d(-\d\d)?(, ?\d\d(-\d\d)?)*", text):
        raise ValueError(f"{text!r} names no sections; write two digits each, such as 02-21 or 00,24")
    ranges = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return {f"{section:02}" for ends in ranges for section in range(ends[0], ends[-1] + 1)}


class TreebankData(Section):
    """Bracketed trees of the Penn Treebank's format: sentences to parse, and their trees to be written.

    The splits are sections of the Wall Street Journal by file name, as papers have them, or shares that a seed draws:
    of whole files, so that no article is in two splits, or of single trees.
    """

    outputs: ClassVar[str] = TREES  # what a model of these pairs writes
    source: Literal["treebank"]
    licence: str | None = None  # of the text, for report.md: "LDC User Agreement"
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


DataSection = Annotated[NumbersData | FilesData | TfdsData | TreebankData, pydantic.Field(discriminator="source")]
