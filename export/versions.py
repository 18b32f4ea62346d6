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

from keras_transformer.ground.errors import UserError
from keras_transformer.runs.lite_folder import is_lite_folder

SAVED_MODEL = "saved_model.pb"  # what makes a folder a version
HIGHEST = 2**63 - 1  # the highest version that the messages of TensorFlow Serving can hold
UNFINISHED = ".unfinished-"  # how the name of a version begins while it is written
SECONDS_TO_LOCK = 60  # a younger unfinished version may not be locked yet
CERTIFICATE = "certificate.json"  # in a version, if it was compared with its run
LITERT = "assets.extra/litert"  # the path in a version of a LiteRT model, which TensorFlow Serving does not read
LANGUAGES = "assets.extra/languages.json"  # the path in a version of what the local server knows of its languages
WARM_UP_REQUESTS = "assets.extra/tf_serving_warmup_requests"  # the path in a version that TensorFlow Serving reads

log = logging.getLogger("export")


class ExportError(UserError):
    """An export that cannot be written or used; the message gives the reason."""


def numbered_versions(folder: str | os.PathLike) -> dict[int, pathlib.Path]:
    """Return the folder of each version in `folder` by its number, ascending, incomplete versions included.

    The name may begin with zeros, as in `00000123`. Of two names of a number, the shorter one counts.
    """
    names = sorted((child.name for child in pathlib.Path(folder).iterdir()), key=len, reverse=True)
    paths = {int(name): pathlib.Path(folder) / name for name in names if is_number(name)}
    return dict(sorted(paths.items()))


def version_numbers(folder: str | os.PathLike) -> list[int]:
    """Return the version numbers in `folder`, ascending, incomplete versions included."""
    return list(numbered_versions(folder))


def is_number(name: str) -> bool:
    """Return whether the name of a folder is the number of a version: digits, of a number that has 64 bits."""
    return name.isascii() and name.isdigit() and int(name) <= HIGHEST


def find_version(folder: str | os.PathLike) -> pathlib.Path:
    """Return `folder` itself if it is a version, else the newest version in it. Raises ExportError if it has none."""
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        kind = "is a file" if folder.exists() else "does not exist"
        raise ExportError(
            f"{folder} {kind}; it must be a folder that `keras-transformer export RUN --to FOLDER` wrote."
        )
    if is_version(folder):
        return folder
    complete = [path for path in numbered_versions(folder).values() if is_version(path)]
    if not complete:
        from keras_transformer.runs.run_folder import refuse_run  # not needed to translate

        refuse_run(folder, ExportError)
        if is_lite_folder(folder):
            raise ExportError(
                f"{folder} is a LiteRT model alone, which servers do not read: `keras-transformer export RUN --to "
                "FOLDER --litert` puts one beside the graph that they read."
            )
        raise ExportError(
            f"{folder} holds no exported version. `keras-transformer export RUN --to {folder}` writes one."
        )
    return complete[-1]


def is_version(folder: pathlib.Path) -> bool:
    """Return whether a folder is an exported version."""
    return (folder / SAVED_MODEL).is_file()


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
