"""Numbered versions in one folder, the layout that `tensorflow_model_server` watches: FOLDER/1, FOLDER/2, ..."""

import contextlib
import fcntl
import logging
import os
import pathlib
import shutil
import time
import uuid
from collections.abc import Iterator

from keras_transformer.runs.versions import UNFINISHED, ExportError, is_version, version_numbers

SECONDS_TO_LOCK = 60  # a younger unfinished version may not be locked yet

log = logging.getLogger("export")


def refuse_version(folder: str | os.PathLike) -> None:
    """Raise ExportError if `folder` is a version itself: no server would find a version inside it."""
    if is_version(pathlib.Path(folder)):
        raise ExportError(f"{folder} is a version itself: name the folder above it, which holds the versions.")


def refuse_existing(folder: pathlib.Path) -> None:
    """Raise ExportError if `folder` exists and is no empty folder, or if it cannot be replaced."""
    if os.path.ismount(folder):
        raise ExportError(f"{folder} is where a file system is mounted: name a folder inside it.")
    if os.path.lexists(folder) and not (folder.is_dir() and not any(folder.iterdir())):
        raise ExportError(f"{folder} exists already: name a new folder, or remove this one first.")


@contextlib.contextmanager
def unfinished_version(folder: str | os.PathLike) -> Iterator[pathlib.Path]:
    """Within, there is a new folder inside `folder` to write a version into, whose name no server takes for a version.

    `publish` makes it a version. If it was not published, it is removed at the end, and so is `folder` if it was
    created here and is empty. The remains of killed exports in `folder` are removed first. Raises ExportError if
    `folder` is a file or cannot be written to.
    """
    folder = pathlib.Path(folder)
    created = [path for path in (folder, *folder.parents) if not os.path.exists(path)]
    remove_abandoned(folder)
    unfinished = folder / f"{UNFINISHED}{uuid.uuid4().hex}"
    lock = None
    try:
        make_folder(unfinished)
        lock = locked(unfinished)
        yield unfinished
    finally:
        if lock is not None:
            os.close(lock)
        shutil.rmtree(unfinished, ignore_errors=True)
        with contextlib.suppress(OSError):  # a folder that is not empty stays
            for path in created:
                path.rmdir()


def locked(path: pathlib.Path) -> int | None:
    """Lock a folder for as long as this process lives or the returned descriptor is open.

    Returns None if another process holds it, or if the file system has no locks. Raises OSError if `path` is no folder
    but a link to one, or a pipe, for example.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def remove_abandoned(folder: pathlib.Path) -> None:
    """Remove unfinished versions whose process ended without removing them, as after `kill -9`."""
    for path in folder.glob(f"{UNFINISHED}*"):
        with contextlib.suppress(OSError):  # another process may be removing it
            if time.time() - path.stat().st_mtime > SECONDS_TO_LOCK and (lock := locked(path)) is not None:
                log.warning("removing %s, the remains of a killed export", path)
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


def make_folder(path: pathlib.Path) -> None:
    """Create a folder and its parents. Raises ExportError if they cannot be created."""
    try:
        path.mkdir(parents=True)
    except (FileExistsError, NotADirectoryError):
        raise ExportError(f"{path.parent} is not a folder, so nothing can be exported into it.") from None
    except OSError as error:
        raise ExportError(f"Nothing can be exported into {path.parent}: {error.strerror}.") from None


def publish(unfinished: pathlib.Path) -> pathlib.Path:
    """Rename a complete version to the next free number, in one step: a server sees all of it or nothing.

    Returns the new path.
    """
    folder = unfinished.parent
    number = max(version_numbers(folder), default=0) + 1
    while True:
        try:
            return unfinished.rename(folder / str(number))
        except OSError:
            if not os.path.lexists(folder / str(number)):
                raise
            number += 1  # another process has just published this one
