"""What a version consists of on disk: whether somebody has written to it, and what must not be read."""

import os
import pathlib

from ..versions import ExportError

Fingerprint = tuple[tuple[str, str, int, int], ...]


def fingerprint_of(path: pathlib.Path) -> Fingerprint:
    """Return names, sizes and times of the files of a version, which change if somebody writes to it.

    With the place to which each name leads, since a link may be turned to a file of the same size and time.
    """
    files = []
    for file in files_of(path):
        try:
            status = file.stat()
        except OSError:  # removed in the meantime
            continue
        files.append((str(file.relative_to(path)), os.path.realpath(file), status.st_size, status.st_mtime_ns))
    return tuple(files)


def files_of(path: pathlib.Path) -> list[pathlib.Path]:
    """Return what is inside a version, sorted, with the files behind a link in place of `variables` or `assets`.

    No other link is followed: it may lead to all files of the machine.
    """
    return sorted({*path.rglob("*"), *path.glob("*/*")})


def refuse_pipes(path: pathlib.Path) -> None:
    """Raise ExportError if a version holds something else than files and folders: to read it might never end."""
    for file in files_of(path):
        if file.exists() and not (file.is_file() or file.is_dir()):
            raise ExportError(f"{path} cannot be loaded: {file.relative_to(path)} is neither a file nor a folder.")
