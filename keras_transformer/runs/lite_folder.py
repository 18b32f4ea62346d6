"""The folder of a LiteRT model: search.tflite, its tokenizer, and litert.json, which says what the file holds."""

import hashlib
import json
import os
import pathlib
from typing import Any, NamedTuple

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.files import write_atomically
from keras_transformer.ground.notations import json_of
from keras_transformer.pieces.language_marks import NO_LANGUAGES, Languages
from keras_transformer.runs.aligned_by import AlignedBy
from keras_transformer.search.options import RUN_OPTIONS, SearchOptions

DESCRIPTION = "litert.json"
IDENTIFIER = b"TFL3"  # at byte 4 of every LiteRT file
ALIGN = "align"  # the signature that gives an attention, if the file has one
PREFIX_TOKENS, ENDING_TOKENS = 32, 8  # of the inputs for the beginning of a translation
PHRASES, WAYS, PHRASE_TOKENS = 8, 3, 8  # of the input for phrases that a translation must have
SEQUENCE_TOKENS = 8  # of the input for sequences that it must not have


class Room(NamedTuple):
    """What one signature of the file translates at once: `rows` sentences of at most `tokens` tokens, EOS included.

    outputs: the longest translation that it finds, in tokens, EOS included; None: any that the options allow. With a
    bound a search is faster, since it has one loop and copies less. is_constrained: whether it has inputs for what the
    translation begins with, must have, and must not have; a file need not have such a signature.
    """

    rows: int
    tokens: int
    outputs: int | None = None
    is_constrained: bool = False

    @property
    def signature(self) -> str:
        bound = "" if self.outputs is None else f"_to_{self.outputs}"
        return f"translate_{'constrained_' * self.is_constrained}{self.rows}x{self.tokens}{bound}"


class LiteFolder:
    """The paths of the files of a LiteRT model, as attributes. Creates nothing."""

    def __init__(self, path: str | os.PathLike):
        self.path = pathlib.Path(path)
        self.model = self.path / "search.tflite"
        self.tokenizer = self.path / "tokenizer.model"
        self.description = self.path / DESCRIPTION
        self.calibration = self.path / "calibration.json"  # if the run was calibrated


class Description(NamedTuple):
    """How the file searches, and for which shapes it was made.

    search: values of RUN_OPTIONS. rooms: what its signatures translate. quantization: how its weights are kept,
    "float16" or "int8"; None is float32. sha256, tokenizer_sha256: of the file and of its tokenizer, in hexadecimal;
    None: it was not kept yet. languages: which the model reads and writes, and how it is told them. alignment: which
    attention the signature ALIGN gives; None: the file has none.
    """

    search: dict[str, Any]
    rooms: tuple[Room, ...]
    quantization: str | None = None
    sha256: str | None = None
    languages: Languages = NO_LANGUAGES
    tokenizer_sha256: str | None = None
    alignment: AlignedBy | None = None

    @property
    def max_source_tokens(self) -> int:
        """The longest source sentence that is not truncated, in tokens, EOS included."""
        return max(room.tokens for room in self.rooms if room.outputs is None)

    def save(self, path: str | os.PathLike) -> None:
        """Write litert.json."""
        of_model = {"languages": self.languages.as_json(), "alignment": self.alignment and self.alignment._asdict()}
        write_atomically(path, json.dumps(self._asdict() | of_model, indent=2) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Description":
        """Read what `save` wrote. Raises ConfigError, naming the file, if it cannot be read or is damaged.

        "context", which files of an earlier version have, is not read: their models translate sentences alone too.
        """
        try:
            values = json_of(pathlib.Path(path).read_text(encoding="utf-8"))
            if not isinstance(values, dict) or (missing := {"rooms", "search", "quantization"} - values.keys()):
                raise ConfigError(
                    f"it has no {min(missing)}" if isinstance(values, dict) else "it is no object of JSON"
                )
            rooms = tuple(Room(*room) for room in values["rooms"])
            sizes = [size for room in rooms for size in room[:3] if size is not None]
            if any(type(size) is not int or size < 1 for size in sizes) or {type(room[3]) for room in rooms} - {bool}:
                raise ConfigError("the size of a room is no number of at least 1")
            search = dict(values["search"])
            if unknown := sorted(search.keys() - set(RUN_OPTIONS)):
                raise ConfigError(f"search has {', '.join(unknown)}; it may have {', '.join(RUN_OPTIONS)}")
            SearchOptions(**search)
            if not any(room.rows == 1 and room.outputs is None and not room.is_constrained for room in rooms):
                raise ConfigError("it has no room for one sentence and any translation")
            languages = Languages.of(values.get("languages", {}))
            sums = values.get("sha256"), values.get("tokenizer_sha256")
            if not all(isinstance(each, str | None) for each in sums):
                raise ConfigError(f"a SHA-256 is {sums}; each must be a text, or null")
            alignment = None if values.get("alignment") is None else AlignedBy(**values["alignment"])
            if alignment:
                alignment.check()
            return cls(search, rooms, values["quantization"], sums[0], languages, sums[1], alignment)
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
        except (TypeError, ValueError, ConfigError) as error:
            cause = str(error).rstrip(".")
            raise ConfigError(f"{path} is damaged: {cause}. Restore it, or export the run again.") from None


def why_damaged(content: bytes, sha256: str | None) -> str | None:
    """Return why a file of the folder is damaged, by its SHA-256; None if it is whole, or of before that was kept."""
    if not content:
        return "It is empty."
    if sha256 is None or (actual := hashlib.sha256(content).hexdigest()) == sha256:
        return None
    told = f"Its SHA-256 begins with {actual[:12]}, and {DESCRIPTION} says {sha256[:12]}"
    return f"{told}: it is damaged, or of another export."


def is_lite_folder(path: str | os.PathLike) -> bool:
    """Return whether a folder holds a LiteRT model."""
    return (pathlib.Path(path) / DESCRIPTION).is_file()
