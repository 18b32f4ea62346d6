"""Files that a command is asked to write: checked before it does its work, so that the work is not lost."""

import os
import pathlib
from collections.abc import Iterable

from keras_transformer.config import ConfigError
from keras_transformer.run_folder import RunFolder

PICTURES = (".png", ".svg", ".pdf")


def check_picture(option: str, path: pathlib.Path) -> None:
    """Raises ConfigError if `path`, given as `option`, is no picture's name or cannot be written."""
    if path.suffix.lower() not in PICTURES:
        raise ConfigError(f"{option} {path} is no picture's name: let it end in {', '.join(PICTURES)}.")
    check_writable(option, path)
    if not os.access(path.parent, os.W_OK):  # where it is written first, to be complete when it takes its name
        raise ConfigError(f"{option} {path} cannot be written: the folder {path.parent} is not writable.")


def check_writable(option: str, path: pathlib.Path) -> None:
    """Raises ConfigError if `path`, given as `option`, cannot be written."""
    if not path.parent.is_dir():
        raise ConfigError(f"{option} {path} cannot be written: there is no folder {path.parent}. Create it first.")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ConfigError(f"{option} {path} cannot be written: it is a folder, or not writable.")


def check_plain_text(option: str, path: pathlib.Path) -> None:
    """Raises ConfigError if `path`, given as `option`, is named as compressed: what is written there is not."""
    if path.suffix == ".gz":
        raise ConfigError(f"{option} {path} ends in .gz, but plain text is written: leave the .gz out.")


def check_not_read(option: str, path: pathlib.Path, read: Iterable[pathlib.Path | None]) -> None:
    """Raises ConfigError if `path`, given as `option`, is one of the files that the command reads.

    Of a folder, which is that of a run, these are all files that a run has.
    """
    for other in read:
        if other is not None and path.resolve() == other.resolve():
            raise ConfigError(f"{option} {path} is one of the files to be read: name another one.")
        if other is not None and other.is_dir():
            RunFolder(other).refuse_own_file(option, path)
