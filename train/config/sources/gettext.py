"""The section `data` of catalogues of gettext."""

import pathlib
from typing import Literal

import pydantic

from keras_transformer.pieces.languages import CODE

from ..data import DataSection

SUFFIXES = (".mo", ".po")


def names_language(path: pathlib.PurePath, code: str) -> bool:
    """Whether a path is of a language: a folder of it, or the end of its name, is the code: de/app.mo, app-de.po."""
    *folders, name = path.with_suffix("").parts
    wanted = code.replace("_", "-").casefold()
    parts = [part.replace("_", "-").casefold() for part in (*folders, name)]
    return wanted in parts or parts[-1].endswith((f"-{wanted}", f".{wanted}"))


def catalogues_in(path: pathlib.Path, code: str) -> list[pathlib.Path]:
    """The file itself, or the catalogues of a language in a folder and the folders in it, by name."""
    if not path.is_dir():
        return [path]
    files = (file for suffix in SUFFIXES for file in path.rglob(f"*{suffix}"))
    return sorted(file for file in files if names_language(file.relative_to(path.parent), code))


class GettextData(DataSection):
    """Catalogues of gettext, .mo and .po: files, and folders in whose paths the target language stands, as de/app.mo.

    The source is the msgid, or the same catalogue in the source language, if that is not the language of msgids.
    """

    PATHS = ("train", "validation", "test")

    source: Literal["gettext"]
    source_language: str = "en"
    target_language: str
    msgid_language: str = "en"
    train: list[str] = pydantic.Field(min_length=1)
    validation: list[str] = pydantic.Field(min_length=1)
    test: list[str] = []
    shards: Literal[1] = 1

    @pydantic.field_validator("source_language", "target_language", "msgid_language")
    @classmethod
    def check_language(cls, code: str) -> str:
        if not CODE.fullmatch(code.replace("_", "-")):
            raise ValueError(f"{code!r} is no code of a language; give one as paths have it, such as de or pt_BR")
        return code

    @pydantic.model_validator(mode="after")
    def check_direction(self) -> "GettextData":
        if self.target_language in (self.source_language, self.msgid_language):
            raise ValueError(
                f"target_language is {self.target_language!r}, which is the source_language or the msgid_language: "
                "a catalogue translates from msgids"
            )
        return self

    @property
    def description(self) -> str:
        return f"catalogues of gettext: {', '.join(self.train)}"

    def catalogues(self, split: str) -> dict[pathlib.Path, pathlib.Path | None]:
        """The catalogues of "train", "validation" or "test": of each that of the source language, None for msgids."""
        named = [pathlib.Path(path).expanduser() for path in getattr(self, split)]
        targets = [file for path in named for file in catalogues_in(path, self.target_language)]
        return (
            dict.fromkeys(targets)
            if self.source_language == self.msgid_language
            else {target: self.in_source_language(target) for target in targets}
        )

    def in_source_language(self, target: pathlib.Path) -> pathlib.Path:
        """The path of the same catalogue in the source language: the last folder or name of the target's changes."""
        *folders, stem = target.with_suffix("").parts
        for place in range(len(folders), -1, -1):
            part = (*folders, stem)[place]
            if part == self.target_language:
                changed = self.source_language
            elif place == len(folders) and part.endswith((f"-{self.target_language}", f".{self.target_language}")):
                changed = part[: -len(self.target_language)] + self.source_language
            else:
                continue
            parts = [*folders, stem]
            parts[place] = changed
            return pathlib.Path(*parts[:-1], parts[-1] + target.suffix)
        return target

    def paths(self) -> list[pathlib.Path]:
        pairs = [pair for split in self.PATHS for pair in self.catalogues(split).items()]
        return [path for pair in pairs for path in pair if path]
