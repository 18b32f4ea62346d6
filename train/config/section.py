"""What every section of a run configuration is: a table of checked keys."""

import dataclasses
import os
from typing import Annotated, Any, ClassVar, Literal

import pydantic


class Section(pydantic.BaseModel):
    """A table of the TOML file. Unknown keys, other types ("100" is not a number), infinities and NaN are errors."""

    PATHS: ClassVar[tuple[str, ...]] = ()  # keys that name files: these may differ between workers, and move
    AFTER_TRAINING: ClassVar[tuple[str, ...]] = ()  # keys that may change once a run is done: no step depends on them

    model_config = pydantic.ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, protected_namespaces=()
    )


@dataclasses.dataclass(frozen=True)
class OneOf:
    """Annotated[str, OneOf(texts)] is a key that is one of the texts: a Literal of texts that stand elsewhere."""

    texts: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: pydantic.GetCoreSchemaHandler) -> Any:
        return handler.generate_schema(Literal[self.texts])


def expanded(path: str) -> str:
    """Return a path with the home folder in place of "~". Raises ValueError for one that no system takes."""
    if "\0" in path:
        raise ValueError(f"{path!r:.60} has the character U+0000, which no path may have")
    return os.path.expanduser(path)


PathText = Annotated[str, pydantic.Field(min_length=1), pydantic.AfterValidator(expanded)]
