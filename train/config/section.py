"""What every section of a run configuration is: a table of checked keys."""

import os
from typing import Annotated, ClassVar

import pydantic


class Section(pydantic.BaseModel):
    """A table of the TOML file. Unknown keys, other types ("100" is not a number), infinities and NaN are errors."""

    PATHS: ClassVar[tuple[str, ...]] = ()  # keys that name files: these may differ between workers, and move
    AFTER_TRAINING: ClassVar[tuple[str, ...]] = ()  # keys that may change once a run is done: no step depends on them

    model_config = pydantic.ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, protected_namespaces=()
    )


PathText = Annotated[str, pydantic.Field(min_length=1), pydantic.AfterValidator(os.path.expanduser)]  # "~" is expanded
