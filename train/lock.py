"""One trainer to a run folder: a lock that dies with its process."""

import contextlib
import fcntl
import os
import tempfile

from keras_transformer.config import ConfigError
from train.run_folder import RunFolder


@contextlib.contextmanager
def own_folder(path, share):
    """The run folder at `path`, locked, for the chief; a temporary one for every other worker, which keeps nothing."""
    if share.is_chief:
        folder = RunFolder(path)
        with run_lock(folder):
            yield folder
    else:
        with tempfile.TemporaryDirectory() as scratch:
            yield RunFolder(scratch)


@contextlib.contextmanager
def run_lock(folder):
    """Hold the run folder while training. The system lets go of it however the process ends.

    Raises ConfigError where another process holds it, with that process's number.
    """
    with open(folder.lock, "a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise ConfigError(
                f"{folder.path} is being trained by process {holder}. Wait for it, stop it, or use another run_folder."
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
