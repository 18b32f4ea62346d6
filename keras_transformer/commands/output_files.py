"""Checks of the files that a command will write, made before its work, so that the work is not lost."""

import os
import pathlib
from collections.abc import Iterable

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.files import behind_links, resolved
from keras_transformer.runs.run_folder import RunFolder

PICTURES = (".png", ".svg", ".pdf")


def check_picture(option: str, path: pathlib.Path) -> None:
    """Raises ConfigError if `path`, the value of `option`, is not the name of a picture or cannot be written."""
    if path.suffix.lower() not in PICTURES:
        raise ConfigError(f"{option} {path} is not the name of a picture: let it end in {', '.join(PICTURES)}.")
    check_writable(option, path)
    check_replaced(option, path)


def check_replaced(option: str, path: pathlib.Path) -> None:
    """Raises ConfigError if no file can be made beside `path`, the value of `option`, to replace it when complete."""
    folder = behind_links(path).parent
    if not os.access(folder, os.W_OK):
        raise ConfigError(f"{option} {path} cannot be written: the folder {folder} is not writable.")


def check_writable(option: str, path: pathlib.Path) -> None:
    """Raises ConfigError if `path`, the value of `option`, cannot be written."""
    folder = behind_links(path).parent
    if not folder.is_dir():
        raise ConfigError(f"{option} {path} cannot be written: there is no folder {folder}. Create it first.")
    if path.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        raise ConfigError(f"{option} {path} cannot be written: it is a folder, or not writable.")


def check_plain_text(option: str, path: pathlib.Path) -> None:
    """Raises ConfigError if the name of `path`, the value of `option`, promises a compressed file."""
    if path.suffix == ".gz":
        raise ConfigError(f"{option} {path} ends in .gz, but the text is written uncompressed: leave the .gz out.")


def is_same_file(path: pathlib.Path, other: pathlib.Path) -> bool:
    """Return whether two paths lead to one file, as through links. It need not exist yet."""
    return resolved(path) == resolved(other) or (path.exists() and other.exists() and path.samefile(other))


def check_not_read(option: str, path: pathlib.Path, read: Iterable[pathlib.Path | None]) -> None:
    """Raises ConfigError if `path`, the value of `option`, is one of the files that the command reads.

    `read` may have run folders, all of whose files count.
    """
    for other in read:
        if other is not None and is_same_file(path, other):
            raise ConfigError(f"{option} {path} is one of the files that are read: name another one.")
        if other is not None and other.is_dir():
            RunFolder(other).refuse_own_file(option, path)
