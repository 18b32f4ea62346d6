"""What the configurations of all kinds of model have in common: checks, and model.json."""

import dataclasses
import json
import os
import pathlib
from typing import TYPE_CHECKING, Any, ClassVar, Self

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.files import write_atomically
from keras_transformer.ground.notations import json_of

KIND = "kind"  # the key of model.json that names the kind; a file without it is of the first kind there was
FIRST_KIND = "transformer"


@dataclasses.dataclass(frozen=True)
class BaseModelConfig:
    """The base of TransformerConfig and RecurrentConfig: a frozen dataclass that checks its own fields."""

    kind: ClassVar[str]  # as model.json and the section [model] name it
    if TYPE_CHECKING:  # what every kind has, each with its own defaults
        vocab_size: int
        d_model: int
        shared_embeddings: bool
        dropout: float
        label_smoothing: float

        @property
        def position_limit(self) -> int | None: ...

        @property
        def memory_attentions(self) -> int: ...

    def replace(self, **changes) -> Self:
        """The same configuration with some fields changed."""
        return dataclasses.replace(self, **changes)

    @classmethod
    def fields(cls) -> tuple[str, ...]:
        """Return the names of the fields, in order."""
        return tuple(field.name for field in dataclasses.fields(cls))

    def to_dict(self) -> dict[str, Any]:
        """Return the kind and the fields, from which `from_values` makes the configuration again."""
        return {KIND: self.kind, **dataclasses.asdict(self)}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2) + "\n"

    def save(self, path: str | os.PathLike):
        write_atomically(path, self.to_json())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of `to_json`. Raises ConfigError if `text` is not a JSON object of fields that make sense."""
        return cls.from_values(parse_json(text))

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> Self:
        """The configuration of a parsed model.json. Raises ConfigError if it is of another kind or makes no sense."""
        kind = values.get(KIND, FIRST_KIND)
        if kind != cls.kind:
            raise ConfigError(f"its kind is {kind!r}, expected {cls.kind!r}.")
        unknown = sorted(set(values) - {KIND, *cls.fields()})
        if unknown:
            raise ConfigError(f"it has fields that this version does not know: {', '.join(unknown)}.")
        return cls(**{name: value for name, value in values.items() if name != KIND})

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        """Read what `save` wrote. Raises ConfigError, naming the file, if it cannot be read or is damaged."""
        return read_config(path, cls.from_json)

    def _use_python_numbers(self) -> None:
        """Replace the numbers of NumPy among the fields, which JSON does not have, by Python's own."""
        for name in self.fields():
            value = getattr(self, name)
            if hasattr(value, "item") and getattr(value, "shape", None) == ():
                object.__setattr__(self, name, value.item())

    def _check_count(self, name: str, least: int = 1):
        value = getattr(self, name)
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        self._check(name, is_whole and value >= least, f"a whole number of at least {least}")

    def _check(self, name: str, is_right: bool, expected: str):
        if not is_right:
            raise ConfigError(f"model.{name} is {getattr(self, name)!r}; it must be {expected}.")


def parse_json(text: str) -> dict[str, Any]:
    """The values in model.json. Raises ConfigError if `text` is not a JSON object."""
    try:
        values = json_of(text)
    except ValueError as error:
        raise ConfigError(f"not valid JSON: {error}.") from None
    if not isinstance(values, dict):
        raise ConfigError(f"found {text.strip()[:40]!r}, expected a JSON object of named fields.")
    return values


def read_config(path: str | os.PathLike, parse) -> Any:
    """Return parse(text of the file). Raises ConfigError, naming the file, if it cannot be read or is damaged."""
    try:
        return parse(pathlib.Path(path).read_bytes().decode("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is damaged: its byte {error.start + 1} is not UTF-8. Restore the file.") from None
    except ConfigError as error:
        raise ConfigError(f"{path} does not describe a model: {error}") from None


def is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
