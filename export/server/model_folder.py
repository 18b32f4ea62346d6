"""The folder of a model, FOLDER/1, FOLDER/2, ...: which versions are served, and how new ones replace them."""

import asyncio
import enum
import logging
import os
import pathlib
import time
from typing import NamedTuple

from keras_transformer.ground.errors import first_line_of
from keras_transformer.ground.files import resolved
from keras_transformer.runs.versions import find_version, is_number, is_version, numbered_versions

from ..versions import ExportError
from .errors import Code, RequestError, invalid, shown
from .models_config import Model
from .version import Version

Fingerprint = tuple[tuple[str, str, int, int], ...]

log = logging.getLogger("export.server")

RETRIES, RETRY_SECONDS = 5, 60.0  # as in TensorFlow Serving


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


class Served(NamedTuple):
    """A version in memory, with the files that it was loaded from."""

    version: Version
    fingerprint: Fingerprint


class ModelFolder:
    """Serves the versions of a model that its policy names and that can be loaded: the highest one, unless it is told.

    A new version is loaded beside the served ones, warmed up, and replaces what the policy no longer names between two
    requests. An old version is closed after its last request. A version that cannot be loaded is logged once. It is
    tried again if its files have changed, and RETRIES times a minute apart, since the reason may pass; meanwhile the
    next lower one is served, or, if there is none, what was served before. A version that changes or disappears while
    it is loaded is not served. If a served version disappears from the folder, the highest of the others replaces it,
    so removing a version rolls back. If another version takes its number, that one is served. The folder may be a link,
    and the link may be turned to another folder.

    A label means the version that it had before until its new one is served.
    """

    def __init__(self, model: Model, is_single: bool = False):
        """is_single: the path is FOLDER/3, and no other version is served."""
        self.name, self.is_single = model.name, is_single
        self.status: dict[int, Status] = {}
        self._served: dict[pathlib.Path, Served] = {}  # highest first
        self._labelled: dict[str, int] = {}
        self._failures: dict[pathlib.Path, Failure] = {}
        self._closing: set[asyncio.Task] = set()
        self._refreshing, self._is_closed = asyncio.Lock(), False
        self.serves_what_it_is_told = False  # since the last look; else it serves what was served before, or nothing
        self.configure(model)

    @classmethod
    def open(cls, path: str | os.PathLike) -> "ModelFolder":
        """Return the model of a folder, named after it, with its highest version loaded, or with that of FOLDER/3.

        Raises ExportError if no version can be loaded.
        """
        find_version(path)  # raises ExportError if there is none
        folder = pathlib.Path(os.path.abspath(path))  # not resolved: a link may be turned
        is_single = is_version(folder)
        if is_single:
            folder = resolved(folder)  # the name of the folder is the number
        model = Model(folder.parent.name if is_single else folder.name, folder)
        return cls(model, is_single).loaded()

    def configure(self, model: Model) -> None:
        """Serve another folder, by another policy or with other labels, from the next `refresh` on."""
        self.path, self.policy, self.labels = model.path, model.policy, model.labels

    def loaded(self) -> "ModelFolder":
        """Load what is to be served, before there is an event loop. Raises ExportError if nothing can be."""
        self._served = self._load_best({})
        if not self._served:
            raise ExportError(f"No version in {self.path} can be served: {'; '.join(self.reasons)}")
        self._note_served(self.versions)
        return self

    @property
    def reasons(self) -> list[str]:
        """Why versions could not be loaded."""
        failures = [failure.message for path, failure in self._failures.items() if path.parent == self.path]
        return list(dict.fromkeys([*(status.error for status in self.status.values() if status.error), *failures]))

    @property
    def versions(self) -> list[Version]:
        """The versions that are served, highest first."""
        return [served.version for served in self._served.values()]

    def version(self, choice: int | str | None = None) -> Version:
        """Return the served version of a number or a label, the highest one by default.

        Raises RequestError, with the words of TensorFlow Serving, if it is not served.
        """
        number = self._number_of(choice) if isinstance(choice, str) else choice
        for version in self.versions:
            if number in (None, version.number):
                return version
        request = f"Latest({self.name})" if number is None else f"Specific({self.name}, {number})"
        raise RequestError(Code.NOT_FOUND, f"Servable not found for request: {request}")

    def _number_of(self, label: str) -> int:
        """Return the version that a label means. Raises RequestError if it means none."""
        if label not in self.labels:
            raise invalid(f"Unrecognized servable version label: {shown(label)}")
        return self._labelled.get(label, self.labels[label])

    async def watch(self, seconds: float) -> None:
        """Look for new versions every so many seconds, until `close`. Log a reason why this is impossible once."""
        logged = ""
        while not self._is_closed:
            await asyncio.sleep(seconds)
            try:
                await self.refresh()
                reason = ""
            except Exception as error:  # for example, a file system that is unavailable for a while
                reason = first_line_of(error)
            if reason and reason != logged:
                numbers = ", ".join(str(version.number) for version in self.versions) or "none"
                log.error("%s cannot be watched: %a. Served on: version %s.", self.path, reason, numbers)
            elif logged and not reason:
                log.warning("%s can be watched again", self.path)
            logged = reason

    async def refresh(self) -> None:
        """Serve what the policy names now, as far as it can be loaded."""
        async with self._refreshing:
            if not self._is_closed:
                self._serve(await asyncio.to_thread(self._load_best, self._served))

    async def close(self) -> None:
        """Serve nothing from now on."""
        self._is_closed = True
        async with self._refreshing:
            self._serve({})

    def _serve(self, best: dict[pathlib.Path, Served]) -> None:
        """Let versions replace those that are served, between two requests."""
        old, self._served = self._served, best
        new = [served.version for path, served in best.items() if old.get(path) is not served]
        gone = [served.version for path, served in old.items() if best.get(path) is not served]
        for version in gone:
            self.status[version.number] = Status(State.UNLOADING)
        self._note_served(new)
        log_change(self.path, [version.number for version in new], [version.number for version in gone])
        for version in gone:
            if version.users:  # wait in the background, so that the next replacement need not wait
                waiting = asyncio.create_task(self._close_when_unused(version))
                self._closing.add(waiting)
                waiting.add_done_callback(self._closing.discard)
            else:
                self._close(version)

    def _note_served(self, new: list[Version]) -> None:
        """Note the states of new versions, and what labels mean now."""
        for version in new:
            self.status[version.number] = Status(State.AVAILABLE)
        numbers = {version.number for version in self.versions}
        self._labelled = {label: number for label, number in self._labelled.items() if number in numbers} | {
            label: number for label, number in self.labels.items() if number in numbers
        }

    async def _close_when_unused(self, old: Version) -> None:
        while old.users:
            await asyncio.sleep(0.05)
        self._close(old)

    def _close(self, old: Version) -> None:
        old.close()
        if self.status[old.number].state is State.UNLOADING:  # else another version with its number is served
            self.status[old.number] = Status(State.END)

    def _load_best(self, current: dict[pathlib.Path, Served]) -> dict[pathlib.Path, Served]:
        """Return the versions to serve, highest first: those of `current` that stay, and new ones, warmed up.

        If no version can be served, those of `current` stay.
        """
        best: dict[pathlib.Path, Served] = {}
        for path in self._candidates():
            if len(best) == self.policy.most:
                break
            served = self._kept_or_loaded(path, current)
            if served is not None:
                best[path] = served
        self.serves_what_it_is_told = bool(best)
        return best or current

    def _kept_or_loaded(self, path: pathlib.Path, current: dict[pathlib.Path, Served]) -> Served | None:
        """Return a version as it is in memory, or loaded; None if it cannot be loaded."""
        fingerprint, served = fingerprint_of(path), current.get(path)
        if self._is_failure(path, fingerprint) or (served and fingerprint in (served.fingerprint, ())):
            return served
        if not fingerprint:
            return None
        number = int(path.name) if is_number(path.name) else 1
        is_new = all(number != version.number for version, _ in current.values())
        if is_new:
            self.status[number] = Status(State.LOADING)
        try:
            return Served(self._loaded(path, fingerprint), fingerprint)
        except ExportError as error:
            if is_new:
                self.status[number] = Status(State.END, str(error))
            return served  # what is in memory goes on serving

    def _loaded(self, path: pathlib.Path, fingerprint: Fingerprint) -> Version:
        """Load a version and warm it up. Raises ExportError, and keeps the failure, if it cannot be served."""
        try:
            refuse_pipes(path)
            version = Version(path)
        except ExportError as error:
            self._keep_failure(path, fingerprint, str(error))
            raise
        version.model = self.name
        version.warm_up()
        if fingerprint_of(path) != fingerprint:  # withdrawn, or written to: the next look finds what it is then
            version.close()
            raise ExportError(f"{path} changed while it was loaded.")
        self._failures.pop(path, None)
        return version

    def _keep_failure(self, path: pathlib.Path, fingerprint: Fingerprint, message: str) -> None:
        """Remember that a version could not be loaded, and log the reason unless that was the last one too."""
        last = self._failures.get(path)
        before = last if last is not None and last.fingerprint == fingerprint else None
        if before is None or before.message != message:
            log.error("%s", ascii(message)[1:-1])
        self._failures[path] = Failure(fingerprint, message, before.tries + 1 if before else 1, time.monotonic())

    def _is_failure(self, path: pathlib.Path, fingerprint: Fingerprint) -> bool:
        """Return whether a version with these files could not be loaded, and is not to be tried again now."""
        failure = self._failures.get(path)
        if failure is None or failure.fingerprint != fingerprint:
            return False
        return failure.tries > RETRIES or time.monotonic() < failure.at + RETRY_SECONDS

    def _candidates(self) -> list[pathlib.Path]:
        """Return the complete versions that the policy may name, highest first."""
        if self.is_single:
            return [self.path]
        paths = numbered_versions(self.path)
        for number in sorted(self.policy.numbers - paths.keys()):
            self._keep_failure(self.path / str(number), (), f"{self.path} has no version {number}.")
        allowed = self.policy.numbers or paths.keys()
        return [path for number, path in reversed(paths.items()) if number in allowed and self._is_complete(path)]

    def _is_complete(self, path: pathlib.Path) -> bool:
        """Return whether a folder is a complete version that this process may read."""
        try:
            return is_version(path)
        except OSError as error:
            self._keep_failure(path, (), f"{path} cannot be read: {error.strerror}.")
            return False


def log_change(path: pathlib.Path, new: list[int], gone: list[int]) -> None:
    """Log which versions are served from now on, and which no longer."""
    others = [number for number in gone if number not in new]
    for number in new:
        if number in gone:
            log.warning("%s: version %d replaces another one of that number", path, number)
        elif others:
            log.warning("%s: version %d replaces version %d", path, number, others.pop(0))
        else:
            log.warning("%s: version %d is served", path, number)
    for number in others:
        log.warning("%s: version %d is no longer served", path, number)


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
