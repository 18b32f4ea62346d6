"""inference.json: what a run folder says of a model beside its shape, so that commands can translate with it."""

import json
import logging
import numbers
import os
import pathlib
import types
from collections.abc import Mapping
from typing import Any, NamedTuple

from keras_transformer.ground.errors import ConfigError, first_line_of
from keras_transformer.ground.files import write_atomically
from keras_transformer.ground.notations import json_of, toml_of
from keras_transformer.pieces.language_marks import NO_LANGUAGES, Languages
from keras_transformer.runs.aligned_by import LAST_BUT_ONE, AlignedBy
from keras_transformer.search.options import RUN_OPTIONS, SearchOptions

log = logging.getLogger("keras_transformer")

TEXT, TREES = "text", "trees"  # what a model can write
# Fields that a file of an earlier version may have; they change no translation of a sentence: a model with "context"
# learned sentences alone as well as behind those before them
FIELDS_NO_MORE = "terms", "context"


class Inference(NamedTuple):
    """What a model writes, how commands search for it, how long its training sentences were, and what else it knows.

    outputs: "text", or "trees" that are written as lines of brackets.
    search: values of RUN_OPTIONS that commands take for options which are left out; others have their usual defaults.
    longest_source: tokens that a source sentence of the training text had at most, EOS included; None: not known.
    languages: which it reads and writes, and how it is told them. alignment: which attention aligns words.
    """

    outputs: str = TEXT
    search: Mapping[str, Any] = types.MappingProxyType({})
    longest_source: int | None = None
    languages: Languages = NO_LANGUAGES
    alignment: AlignedBy = LAST_BUT_ONE

    def check(self) -> None:
        """Raises ConfigError for a value that makes no sense."""
        if self.outputs not in (TEXT, TREES):
            raise ConfigError(f"outputs is {self.outputs!r}; it must be {TEXT!r} or {TREES!r}.")
        if not isinstance(self.search, Mapping):
            raise ConfigError(f"search is {self.search!r}; it must be a value by name of {', '.join(RUN_OPTIONS)}.")
        if unknown := sorted(self.search.keys() - set(RUN_OPTIONS)):
            raise ConfigError(f"search has {', '.join(unknown)}; it may have {', '.join(RUN_OPTIONS)}.")
        self.options()
        length = self.longest_source
        if length is not None and (not isinstance(length, numbers.Integral) or isinstance(length, bool) or length < 1):
            raise ConfigError(f"longest_source is {length!r}; it must be a whole number of at least 1, or null.")
        self.languages.check()
        self.alignment.check()

    def options(self) -> SearchOptions:
        """How this model searches unless told otherwise."""
        return SearchOptions(**self.search)

    def save(self, path: str | os.PathLike) -> None:
        """Write inference.json."""
        longest_source = None if self.longest_source is None else int(self.longest_source)
        values = self._asdict() | {"search": dict(self.search), "longest_source": longest_source}
        values["languages"], values["alignment"] = self.languages.as_json(), self.alignment._asdict()
        if self.alignment == LAST_BUT_ONE:
            del values["alignment"]
        write_atomically(path, json.dumps(values, indent=2) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Inference":
        """Read what `save` wrote. Raises ConfigError, naming the file, if it cannot be read or is damaged."""
        try:
            values = json_of(pathlib.Path(path).read_text(encoding="utf-8"))
            values = {name: value for name, value in values.items() if name not in FIELDS_NO_MORE}
            languages = Languages.of(values.pop("languages", {}))
            alignment = AlignedBy(**values.pop("alignment", {}))
            inference = cls(**values, languages=languages, alignment=alignment)
            inference.check()
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
        except (ValueError, TypeError, AttributeError, ConfigError) as error:
            cause = str(error).rstrip(".")
            raise ConfigError(f"{path} is damaged: {cause}. Restore it, or write the run folder again.") from None
        return inference


def inference_in_config(path: pathlib.Path) -> Inference:
    """What the config.toml of a run says that was trained before there was an inference.json.

    A folder without config.toml writes text. So does one whose config.toml is damaged, which is logged.
    """
    try:
        values = toml_of(path.read_text(encoding="utf-8-sig"))
        outputs, search = TEXT, {}
        if values["data"]["source"] == "treebank":
            outputs = TREES
            search = {name: value for name, value in values["translation"].items() if name in RUN_OPTIONS}
        training = values.get("training", {})
        inference = Inference(outputs, search, training.get("source_row_length") or training.get("row_length"))
        inference.check()
    except (FileNotFoundError, NotADirectoryError):
        return Inference()
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ConfigError) as error:
        log.warning("%s cannot be read (%s): outputs are taken for text", path, first_line_of(error)[:-1])
        return Inference()
    return inference
