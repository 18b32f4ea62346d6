"""Numbered versions in one folder, the layout that `tensorflow_model_server` watches: FOLDER/1, FOLDER/2, ..."""

import contextlib
import os
import pathlib
import shutil
import uuid

from keras_transformer.errors import UserError

SAVED_MODEL = "saved_model.pb"  # what makes a folder a version


class ExportError(UserError):
    """An export that cannot be made, or cannot be used; the message says why."""


def versions(folder):
    """The numbers that are taken in `folder`, ascending."""
    return sorted(int(child.name) for child in pathlib.Path(folder).iterdir() if is_number(child.name))


def is_number(name):
    return name.isascii() and name.isdigit()


def find_version(folder):
    """`folder` itself where it is a version, else the newest version in it. Raises ExportError where there is none."""
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        kind = "is a file" if folder.exists() else "does not exist"
        raise ExportError(f"{folder} {kind}; it must be a folder that `python -m export RUN --to FOLDER` wrote.")
    if (folder / SAVED_MODEL).is_file():
        return folder
    complete = [number for number in versions(folder) if (folder / str(number) / SAVED_MODEL).is_file()]
    if not complete:
        raise ExportError(f"{folder} holds no exported version. `python -m export RUN --to {folder}` writes one.")
    return folder / str(complete[-1])


@contextlib.contextmanager
def unfinished_version(folder):
    """A new folder inside `folder` to write a version into: no server takes its name for one.

    `publish` turns it into a version. Whatever has not been published is removed at the end, and so is `folder`
    itself if it was made for this and nothing came of it.
    Raises ExportError where `folder` is a file, or cannot be written to.
    """
    folder = pathlib.Path(folder)
    made = [path for path in (folder, *folder.parents) if not os.path.exists(path)]
    unfinished = folder / f".unfinished-{uuid.uuid4().hex}"
    try:
        make_folder(unfinished)
        yield unfinished
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
        with contextlib.suppress(OSError):  # a folder that is not empty has something in it that is not ours
            for path in made:
                path.rmdir()


def make_folder(path):
    try:
        path.mkdir(parents=True)
    except (FileExistsError, NotADirectoryError):
        raise ExportError(f"{path.parent} is not a folder, so no version can be written into it.") from None
    except OSError as error:
        raise ExportError(f"No version can be written into {path.parent}: {error.strerror}.") from None


def publish(unfinished):
    """Rename a complete version to the next free number, in one step: a server sees all of it or nothing.

    Returns the path of the version.
    """
    folder = unfinished.parent
    number = max(versions(folder), default=0) + 1
    while True:
        try:
            return unfinished.rename(folder / str(number))
        except OSError:
            if not (folder / str(number)).exists():
                raise
            number += 1  # somebody else has just published this one
