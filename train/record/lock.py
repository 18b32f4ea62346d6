"""The run folder of a training: one process at a time writes to it."""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator

from keras_transformer.ground.errors import ConfigError
from keras_transformer.runs.run_folder import RunFolder

from ..workers.tf_config import Worker


@contextlib.contextmanager
def run_folder_of(path: str, worker: Worker) -> Iterator[RunFolder]:
    """Yields the run folder at `path`, locked, on the chief; a temporary one on every other worker.

    Raises ConfigError if it cannot be created or locked.
    """
    if worker.is_chief:
        folder = RunFolder(path)
        create(folder)
        with run_lock(folder):
            yield folder
    else:
        with tempfile.TemporaryDirectory() as scratch:
            yield RunFolder(scratch)


@contextlib.contextmanager
def run_folder_to_read(path: str, worker: Worker) -> Iterator[RunFolder]:
    """Yields the run folder at `path`, which need not exist, on the chief; an empty one on every other worker.

    Raises ConfigError if it could not be created. Creates and locks nothing.
    """
    if worker.is_chief:
        check_can_be_created(RunFolder(path))
        yield RunFolder(path)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            yield RunFolder(scratch)


def create(folder: RunFolder) -> None:
    """Create the run folder. Raises ConfigError if the file system refuses."""
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"run_folder {folder.path} cannot be created: {error.strerror}.") from None


def check_can_be_created(folder: RunFolder) -> None:
    """Raises ConfigError if `create` would, or if nothing can be written there. Creates nothing."""
    place = next(path for path in (folder.path, *folder.path.absolute().parents) if path.exists())
    if not place.is_dir() or not os.access(place, os.W_OK):
        raise ConfigError(f"run_folder {folder.path} cannot be created: {place} is not a folder, or not writable.")


@contextlib.contextmanager
def run_lock(folder: RunFolder) -> Iterator[None]:
    """Holds the lock of the run folder, which the system releases however the process ends.

    Raises ConfigError if another process holds it, with that process's number, and if the folder cannot be locked.
    """
    try:
        file = open(folder.lock, "a+", encoding="ascii")
    except OSError as error:
        raise ConfigError(
            f"run_folder {folder.path} cannot be written to: {error.strerror}. Make it writable, or set another "
            "run_folder."
        ) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise ConfigError(
                f"{folder.path} is being trained by process {holder}. Wait for it, stop it, or set another run_folder."
            ) from None
        except OSError as error:
            raise ConfigError(
                f"run_folder {folder.path} cannot be locked against a second training: {error.strerror}. "
                "Set a run_folder on a file system that has flock, such as a local disk."
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
