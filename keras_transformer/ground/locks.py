"""Files that one process at a time has."""

import fcntl
import os
import pathlib
from typing import BinaryIO

from keras_transformer.ground.errors import ConfigError


def locked(path: pathlib.Path) -> BinaryIO:
    """Open a file for reading and appending. It is locked until it is closed.

    Raises ConfigError if another process has locked it, or if the file system has no locks.
    """
    file = open(path, "a+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        if isinstance(error, BlockingIOError):
            raise ConfigError(
                f"Another process writes to {path}: wait for its end, or give another --output."
            ) from None
        raise ConfigError(f"{path} cannot be locked against a second process: {error.strerror}.") from None
    if is_at(path, file):
        return file
    file.close()  # between the two calls another process finished its work and removed the file
    return locked(path)


def is_at(path: pathlib.Path, file: BinaryIO) -> bool:
    """True if the open file is still the one at `path`."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
