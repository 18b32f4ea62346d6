"""The section `data` of text files."""

import itertools
import pathlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import pydantic

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.tokens import OWN_PIECE
from keras_transformer.pieces.language_marks import TARGET, Codes, Languages
from keras_transformer.pieces.languages import CODE

from ..data import DataSection
from ..section import Section


class FilesEntry(Section):
    """An entry of text files with options, as a table: {files = ["a.en", "a.de"], tag = "<2de>", weight = 2}."""

    files: list[str] | str
    tag: str = ""  # stands before every source sentence: a piece of the tokenizer that marks a language or an origin
    source_language: str | None = None  # of a model of several languages
    target_language: str | None = None  # whose tag is <2CODE>, unless there is one
    weight: float | None = pydantic.Field(None, gt=0)  # share of the training pairs of an epoch; None: 1 if others have

    @pydantic.field_validator("tag")
    @classmethod
    def check_tag(cls, tag: str) -> str:
        if any(character.isspace() or character == "\u2581" for character in tag):
            raise ValueError(f"{tag!r} has a space in it; a tag is one piece, such as <2de>")
        if OWN_PIECE.fullmatch(tag):
            raise ValueError(f"{tag!r} is a piece that every tokenizer has for itself; choose another, such as <2de>")
        return tag

    @pydantic.field_validator("source_language", "target_language")
    @classmethod
    def check_language(cls, code: str | None) -> str | None:
        if code is not None and not CODE.fullmatch(code):
            raise ValueError(f"{code!r} is no code of a language; give one of ISO 639, such as de or deu")
        return code

    @pydantic.model_validator(mode="after")
    def tag_of_language(self) -> "FilesEntry":
        if self.target_language and not self.tag:
            self.__dict__["tag"] = f"<2{self.target_language}>"
        return self

    def told_by(self, languages: Languages) -> "FilesEntry":
        """The same entry without the tag that its language has by itself, if a model knows that by another piece."""
        if not self.target_language or self.tag != f"<2{self.target_language}>":
            return self
        try:
            code = languages.code_of(TARGET, self.target_language)
        except ConfigError:
            return self
        return self if languages.target.get(code, "") in ("", self.tag) else self.model_copy(update={"tag": ""})

    @property
    def description(self) -> str:
        """Its files, tag and weight in words: "a.en and a.de (tag <BT>, weight 2)"."""
        options = [f"tag {self.tag}"] * bool(self.tag)
        if self.weight is not None:
            options.append(f"weight {self.weight:g}")
        return f"{self.names} ({', '.join(options)})" if options else self.names

    @property
    def part(self) -> str:
        """What its pairs are called among others: "en to de", or its files."""
        return f"{self.source_language or 'any'} to {self.target_language}" if self.target_language else self.names

    @property
    def names(self) -> str:
        """Its files in words: "a.en and a.de"."""
        return self.files if isinstance(self.files, str) else " and ".join(self.files)


def kind_of_entry(entry: Any) -> str:
    """Return which kind of entry a value is: for messages, before it is checked."""
    return "pair" if isinstance(entry, list) else "tsv" if isinstance(entry, str) else "table"


Entry = Annotated[
    Annotated[list[str], pydantic.Tag("pair")]
    | Annotated[str, pydantic.Tag("tsv")]
    | Annotated[FilesEntry, pydantic.Tag("table")],
    pydantic.Discriminator(kind_of_entry),
]


class FilesData(DataSection):
    """Line-aligned text files, or TSV files with source and target in the first two columns; `.gz` is decompressed.

    Each split is a list of entries. An entry is [source file, target file], or one TSV file, or a FilesEntry. Entry i
    of the training text belongs to shard i mod `shards`.
    """

    PATHS = ("train", "validation", "test")
    AFTER_TRAINING = (*DataSection.AFTER_TRAINING, "source_language", "target_language", "documents")  # decide no pair

    source: Literal["files"]
    source_language: str = "source"
    target_language: str = "target"
    train: list[Entry] = pydantic.Field(min_length=1)
    validation: list[Entry] = pydantic.Field(min_length=1)
    test: list[Entry] = []
    documents: Literal["column", "blank line"] | None = None  # what tells documents apart; None: nothing does
    train_pairs: int | None = pydantic.Field(None, ge=1)  # the first so many of them; None: all

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

    @pydantic.model_validator(mode="after")
    def check_documents(self) -> "FilesData":
        pairs = [entry.names for entry in self.all_entries() if not isinstance(entry.files, str)]
        if self.documents == "column" and pairs:
            raise ValueError(
                f'documents is "column", the third of a TSV file, but {pairs[0]} are two files: set it to '
                '"blank line", or put both sides and the name of the document into one file'
            )
        return self

    @pydantic.field_validator("validation", "test")
    @classmethod
    def check_weights(cls, entries: list[Entry]) -> list[Entry]:
        if any(isinstance(entry, FilesEntry) and entry.weight is not None for entry in entries):
            raise ValueError("an entry has a weight; only entries of data.train have")
        return entries

    def all_entries(self) -> Iterator[FilesEntry]:
        """The entries of every split."""
        return itertools.chain.from_iterable(map(self.entries, ("train", "validation", "test")))

    def entries(self, split: str) -> list[FilesEntry]:
        """The entries of "train", "validation" or "test", each as a FilesEntry."""
        entries = getattr(self, split)
        return [entry if isinstance(entry, FilesEntry) else FilesEntry(files=entry) for entry in entries]

    @property
    def description(self) -> str:
        return ", ".join(entry.description for entry in self.entries("train"))

    @property
    def languages(self) -> str:
        """The languages, or the first training files if the section names none: "train.en to train.de"."""
        if any(entry.target_language for entry in self.entries("train")):
            return ", ".join(dict.fromkeys(entry.part for entry in self.entries("train")))
        if self.source_language != type(self).model_fields["source_language"].default:
            return super().languages
        first, *others = [entry.files for entry in self.entries("train")]
        named = f"{first}, source to target" if isinstance(first, str) else " to ".join(first)
        return named + (f", and {len(others)} more" if others else "")

    def paths(self) -> list[pathlib.Path]:
        files = itertools.chain.from_iterable(
            [entry.files] if isinstance(entry.files, str) else entry.files for entry in self.all_entries()
        )
        return [pathlib.Path(path).expanduser() for path in files]

    @property
    def tags(self) -> tuple[str, ...]:
        """All tags, each once, in the order of the entries."""
        return tuple(dict.fromkeys(entry.tag for entry in self.all_entries() if entry.tag))

    def codes_of(self, entry: FilesEntry) -> Codes:
        """The languages of an entry: its own, or those of the section, but for a target that its tag tells."""
        source, target = self.codes
        return entry.source_language or source, entry.target_language or ("" if entry.tag else target)

    def all_codes(self) -> list[Codes]:
        return [self.codes_of(entry) for entry in self.all_entries()]

    def told_by(self, languages: Languages) -> "FilesData":
        def told(entry: Entry) -> Entry:
            return entry.told_by(languages) if isinstance(entry, FilesEntry) else entry

        splits = {name: list(map(told, getattr(self, name))) for name in ("train", "validation", "test")}
        return self.model_copy(update=splits)

    @property
    def told_languages(self) -> Languages:
        """By the entries, if they have languages: each target language has a tag."""
        entries = [entry for entry in self.entries("train") if entry.target_language and entry.tag]
        if not entries:
            return super().told_languages
        sources = {entry.source_language: "" for entry in entries if entry.source_language}
        tags = {entry.target_language: entry.tag for entry in entries if entry.target_language}
        return Languages(sources, tags, source_first=TARGET)

    @pydantic.model_validator(mode="after")
    def check_languages(self) -> "FilesData":
        tags: dict[str, str] = {}
        for entry in self.entries("train"):
            if (code := entry.target_language) and tags.setdefault(code, entry.tag) != entry.tag:
                raise ValueError(f"the target_language {code} has the tags {tags[code]} and {entry.tag}: give it one")
        return self

    @property
    def unfit_tokenizer(self) -> dict[str, str]:
        reason = "data.train has tags, which would stand between that space and the first word"
        return {"dummy_prefix": reason} if self.tags else {}

    @classmethod
    def beside_paths(cls, values: Mapping[str, Any], is_told: bool = False) -> dict[str, list[str]]:
        tables = [entry if isinstance(entry, dict) else {} for entry in values.get("train", ())]
        marks = [
            (table.get("tag") or (f"<2{code}>" if (code := table.get("target_language")) else ""), table.get("weight"))
            for table in tables
        ]
        texts = [f"tag {tag!r}, weight {weight}" if tag or weight else "" for tag, weight in marks]
        if is_told:
            codes = [f"{table.get('source_language')} to {table.get('target_language')}, " for table in tables]
            texts = list(map("".join, zip(codes, texts, strict=True)))
        return {"train": texts}
