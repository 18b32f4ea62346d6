"""The folder of a model, FOLDER/1, FOLDER/2, ...: which version is served, and how a new one replaces it."""

import asyncio
import enum
import logging
import os
import pathlib
import time
from typing import NamedTuple

from keras_transformer.errors import first_line_of

from ..versions import ExportError, find_version, is_number, is_version, numbered_versions
from .errors import Code, RequestError
from .version import Version

log = logging.getLogger("export.server")

RETRIES, RETRY_SECONDS = 5, 60.0  # as in TensorFlow Serving

Fingerprint = tuple[tuple[str, str, int, int], ...]


class State(enum.Enum):
    """The state of a version, with the numbers of tensorflow_serving/apis/get_model_status.proto."""

    LOADING = 20
    AVAILABLE = 30
    UNLOADING = 40
    END = 50


class Status(NamedTuple):
    """A state, with the reason if the version could not be loaded, else an empty `error`."""

    state: State
    error: str = ""


class Failure(NamedTuple):
    """A version that could not be loaded: its files, the reason, how often it was tried, and when the last time."""

    fingerprint: Fingerprint
    message: str
    tries: int
    at: float


class ModelFolder:
    """Serves the highest version of a folder that can be loaded; the model is named after the folder.

    A new version is loaded beside the served one, warmed up, and replaces it between two requests. The old version is
    closed after its last request. A version that cannot be loaded is logged once. It is tried again if its files have
    changed, and RETRIES times a minute apart, since the reason may pass. A version that changes or disappears while it
    is loaded is not served. If the served version disappears from the folder, the highest of the others replaces it, so
    removing a version rolls back. If another version takes its number, that one is served. `path` may be a link, and
    the link may be turned to another folder.

    Raises ExportError if no version can be loaded.
    """

    def __init__(self, path: str | os.PathLike):
        find_version(path)  # raises ExportError if there is none
        self.path = pathlib.Path(os.path.abspath(path))  # not resolved: a link may be turned
        self.is_single = is_version(self.path)  # the path is FOLDER/3: no other version is served
        if self.is_single:
            self.path = self.path.resolve()  # the name of the folder is the number
        self.name = self.path.parent.name if self.is_single else self.path.name
        self.status: dict[int, Status] = {}
        self._failures: dict[pathlib.Path, Failure] = {}
        self._served: Fingerprint = ()
        self._closing: set[asyncio.Task] = set()
        self._current = self._load_best(None)
        if self._current is None:
            errors = [status.error for status in self.status.values() if status.error]
            raise ExportError(f"No version in {self.path} can be served: {'; '.join(errors)}")
        self.status[self._current.number] = Status(State.AVAILABLE)

    def version(self, number: int | None = None) -> Version:
        """Return the served version. Raises RequestError if `number` is another one."""
        current = self._current
        if number in (None, current.number):
            return current
        raise RequestError(Code.NOT_FOUND, f"Servable not found for request: Specific({self.name}, {number})")

    async def watch(self, seconds: float) -> None:
        """Look for new versions every so many seconds, for ever. A reason why this is impossible is logged once."""
        logged = ""
        while True:
            await asyncio.sleep(seconds)
            try:
                await self.refresh()
                reason = ""
            except Exception as error:  # for example, a file system that is unavailable for a while
                reason = first_line_of(error)
            if reason and reason != logged:
                log.error("%s cannot be watched: %a. Version %d is served on.", self.path, reason, self._current.number)
            elif logged and not reason:
                log.warning("%s can be watched again", self.path)
            logged = reason

    async def refresh(self) -> None:
        """Replace the served version if there is a better one."""
        old = self._current
        new = await asyncio.to_thread(self._load_best, old)
        if new is None:
            return
        self._current = new
        self.status[old.number] = Status(State.UNLOADING)
        self.status[new.number] = Status(State.AVAILABLE)
        which = f"version {old.number}" if new.number != old.number else "another one of that number"
        log.warning("%s: version %d replaces %s", self.path, new.number, which)
        if old.users:  # wait in the background, so that the next replacement need not wait
            waiting = asyncio.create_task(self._close_when_unused(old))
            self._closing.add(waiting)
            waiting.add_done_callback(self._closing.discard)
        else:
            self._close(old)

    async def _close_when_unused(self, old: Version) -> None:
        while old.users:
            await asyncio.sleep(0.05)
        self._close(old)

    def _close(self, old: Version) -> None:
        old.close()
        if self.status[old.number].state is State.UNLOADING:  # else another version with its number is served
            self.status[old.number] = Status(State.END)

    def _load_best(self, current: Version | None) -> Version | None:
        """Load and return the highest version that can be loaded, warmed up; None if that is the current one."""
        for path in self._candidates():
            fingerprint, is_served = fingerprint_of(path), current is not None and path == current.path
            if is_served and (fingerprint in (self._served, ()) or self._is_failure(path, fingerprint)):
                return None
            if not fingerprint or self._is_failure(path, fingerprint):
                continue
            number = int(path.name) if is_number(path.name) else 1
            if not is_served:
                self.status[number] = Status(State.LOADING)
            try:
                version = self._loaded(path, fingerprint)
            except ExportError as error:
                if is_served:
                    return None  # the current one, which is in memory, goes on serving
                self.status[number] = Status(State.END, str(error))
                continue
            self._served = fingerprint
            return version
        return None

    def _loaded(self, path: pathlib.Path, fingerprint: Fingerprint) -> Version:
        """Load a version and warm it up. Raises ExportError, and keeps the failure, if it cannot be served."""
        try:
            refuse_pipes(path)
            version = Version(path)
        except ExportError as error:
            self._keep_failure(path, fingerprint, str(error))
            raise
        version.warm_up()
        if fingerprint_of(path) != fingerprint:  # withdrawn, or written to: the next look finds what it is then
            version.close()
            raise ExportError(f"{path} changed while it was loaded.")
        self._failures.pop(path, None)
        return version

    def _keep_failure(self, path: pathlib.Path, fingerprint: Fingerprint, message: str) -> None:
        """Remember that a version could not be loaded, and log the reason unless that was the last one too."""
        before = self._failures.get(path)
        is_again = before is not None and before.fingerprint == fingerprint
        if not (is_again and before.message == message):
            log.error("%s", ascii(message)[1:-1])
        self._failures[path] = Failure(fingerprint, message, before.tries + 1 if is_again else 1, time.monotonic())

    def _is_failure(self, path: pathlib.Path, fingerprint: Fingerprint) -> bool:
        """Return whether a version with these files could not be loaded, and is not to be tried again now."""
        failure = self._failures.get(path)
        if failure is None or failure.fingerprint != fingerprint:
            return False
        return failure.tries > RETRIES or time.monotonic() < failure.at + RETRY_SECONDS

    def _candidates(self) -> list[pathlib.Path]:
        """Return the complete versions, highest first."""
        if self.is_single:
            return [self.path]
        return [path for path in reversed(numbered_versions(self.path).values()) if self._is_complete(path)]

    def _is_complete(self, path: pathlib.Path) -> bool:
        """Return whether a folder is a complete version that this process may read."""
        try:
            return is_version(path)
        except OSError as error:
            self._keep_failure(path, (), f"{path} cannot be read: {error.strerror}.")
            return False


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
