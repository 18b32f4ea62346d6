"""Work on a long text that a command takes up again where it was stopped."""

import fcntl
import json
import logging
import os
import pathlib
from collections.abc import Sequence
from typing import Any, BinaryIO

from keras_transformer.config import ConfigError

log = logging.getLogger("train")


class Unfinished:
    """What a command has done of its work so far: the file OUTPUT.unfinished, until the output itself is written.

    Its first line says of what it is the work, as JSON; each other line is one result. Lines that were not written to
    their end are done anew. One process at a time has the file.

    Args:
        output: the file that the command will write in the end.
        of: everything that decides the results, as JSON.

    Raises ConfigError if the file has work of another kind, which is not lost so, or if another process works on it.
    """

    def __init__(self, output: pathlib.Path, of: dict[str, Any]):
        self.path, self.of = output.with_name(f"{output.name}.unfinished"), json.loads(json.dumps(of))
        self._file = locked(self.path)
        try:
            self.results = self._read()
        except ConfigError:
            self.close()
            raise

    def _read(self) -> list[Any]:
        """Return the results in the file, which is cut after them and has at least its first line."""
        self._file.seek(0)
        content = self._file.read()
        whole = content[: content.rfind(b"\n") + 1]
        found, length = [], 0  # of what is intact
        for line in whole.splitlines(keepends=True):
            try:
                found.append(json.loads(line))
            except ValueError:
                log.warning("%s is damaged in its line %d: what comes before it stays", self.path, len(found) + 1)
                break
            length += len(line)
        if not found:
            self._file.truncate(0)
            self._write([self.of])
            return []
        of, *results = found
        if of != self.of:
            raise ConfigError(
                f"{self.path} has {len(results):,} results of another text, model or search: remove it to begin anew, "
                "or give another --output."
            )
        self._file.truncate(length)
        log.info("%s has %s results already: going on after them", self.path, f"{len(results):,}")
        return results

    def _write(self, lines: Sequence[Any]) -> None:
        self._file.write("".join(f"{json.dumps(line)}\n" for line in lines).encode())
        self._file.flush()

    def add(self, results: Sequence[Any]) -> None:
        """Keep further results."""
        self.results.extend(results)
        self._write(results)

    def close(self) -> None:
        """Close the file, which stays."""
        self._file.close()

    def finish(self) -> None:
        """Remove the file: the output is written."""
        self.path.unlink(missing_ok=True)
        self.close()


def locked(path: pathlib.Path) -> BinaryIO:
    """Open a file to read and to append to it, locked until it is closed.

    Raises ConfigError if another process has locked it, or if the file system cannot.
    """
    file = open(path, "a+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        if isinstance(error, BlockingIOError):
            raise ConfigError(f"Another process works on {path}: wait for it, or give another --output.") from None
        raise ConfigError(f"{path} cannot be locked against a second process: {error.strerror}.") from None
    if is_at(path, file):
        return file
    file.close()  # another process has finished its work and removed the file, between the two calls
    return locked(path)


def is_at(path: pathlib.Path, file: BinaryIO) -> bool:
    """Whether the open file still is the one at `path`."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
