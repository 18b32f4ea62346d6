"""What a model of another system raises that cannot be imported."""

import contextlib
import os
from collections.abc import Iterator

from keras_transformer.ground.errors import UserError, first_line_of


class ImportedModelError(UserError):
    """A model that cannot be imported; the message names the file, the option or the array, and what is wrong."""


@contextlib.contextmanager
def refusing_damage(path: str | os.PathLike, kind: str) -> Iterator[None]:
    """Within, whatever a parser raises becomes an ImportedModelError: `path` is no `kind`, or is damaged.

    An OSError that names its file goes on, such as that of a missing one.
    """
    try:
        yield
    except ImportedModelError:
        raise
    except Exception as error:  # what damaged and hostile files make parsers raise has no list
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise ImportedModelError(
            f"{path} is damaged, or is not {kind}: {first_line_of(error)} Copy it again."
        ) from None
