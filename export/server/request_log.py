"""A line of JSON for each request for a prediction, written beside the event loop."""

import dataclasses
import datetime
import json
import logging
import logging.handlers
import os
import queue
import sys
import threading
import time

import numpy as np

from ..versions import ExportError
from .signature import Arrays

LOGGED = ("Predict", "Classify", "Regress", "MultiInference")  # not those of probes
LINE_BYTES = 1 << 10  # of a line without text, about
MOST_BYTES = 32 << 20  # of lines that wait for a slow disk; the next ones are left out, and that is logged
LAST_LINES = 2.0  # seconds in which the lines that wait are written when the server ends

log = logging.getLogger("export.server")


@dataclasses.dataclass
class Record:
    """What is known of a request: how it came, the call, and what the call asks for.

    model, version: as they are asked for, and as they answer; None if none does. inputs: None if no text is logged.
    """

    entrypoint: str
    method: str
    model: str = ""
    version: int | None = None
    signature: str = ""
    rows: int = 0
    inputs: Arrays | None = None
    arrived: float = dataclasses.field(default_factory=time.time)


class RotatedFile(logging.handlers.WatchedFileHandler):
    """A file that is opened again if another one has taken its name. Logs once per outage that it cannot be written."""

    has_failed = is_failing = False  # at the line before, and at this one

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        self.has_failed, self.is_failing = self.is_failing, False
        try:
            super().emit(record)
        except OSError:  # to open it again
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (the name is logging's)
        """Log the error that is being handled, unless the line before had one too."""
        self.is_failing = True
        if not self.has_failed:
            log.error("requests cannot be logged: %a", str(sys.exc_info()[1]))


def opened(path: str | os.PathLike) -> RotatedFile:
    """Return the file of the log. Raises ExportError if it cannot be opened."""
    try:
        return RotatedFile(path, encoding="utf-8")
    except OSError as error:
        raise ExportError(f"Requests cannot be logged to {path}: {error.strerror}.") from None


class RequestLog:
    """Writes records to a file in a thread, so that a slow disk delays no request.

    The file may be renamed at any time: the next line begins another one. Raises ExportError if it cannot be opened.
    """

    def __init__(self, path: str | os.PathLike):
        self._file = opened(path)
        self._lines: queue.SimpleQueue[tuple[Record, str, float, int] | None] = queue.SimpleQueue()
        self._lock, self._waiting, self._is_late = threading.Lock(), 0, False
        self._thread = threading.Thread(target=self._write, name="request log", daemon=True)
        self._thread.start()

    def write(self, record: Record, status: str, seconds: float) -> None:
        """Log a request that took so many seconds. Returns at once."""
        if record.method not in LOGGED:
            return
        size = LINE_BYTES + sum(len(text) for text in texts_of(record.inputs))
        with self._lock:
            is_late = self._waiting + size > MOST_BYTES
            if not is_late:
                self._waiting += size
        if is_late and not self._is_late:
            log.error("requests come faster than they can be logged: some are left out")
        self._is_late = is_late
        if not is_late:
            self._lines.put((record, status, seconds, size))

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            record, status, seconds, size = line
            self._file.handle(logging.makeLogRecord({"msg": as_line(record, status, seconds)}))
            with self._lock:
                self._waiting -= size

    def close(self) -> None:
        """Write what waits, and close the file."""
        self._lines.put(None)
        self._thread.join(LAST_LINES)
        if not self._thread.is_alive():
            self._file.close()


def texts_of(inputs: Arrays | None) -> list[bytes]:
    """Return the lines of a request whose inputs are logged."""
    texts = np.empty(0, object) if inputs is None else inputs.get("text", np.empty(0, object))
    return [text for text in texts.flat if isinstance(text, bytes)]


def as_line(record: Record, status: str, seconds: float) -> str:
    """Return a record as a line of JSON."""
    arrived = datetime.datetime.fromtimestamp(record.arrived, datetime.UTC)
    line: dict[str, str | int | float | list[str] | None] = {
        "time": arrived.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "entrypoint": record.entrypoint,
        "method": record.method,
        "model": record.model,
        "version": record.version,
        "signature": record.signature,
        "rows": record.rows,
        "seconds": round(seconds, 6),
        "status": status,
    }
    if record.inputs is not None:
        line["text"] = [text.decode(errors="replace") for text in texts_of(record.inputs)]
    return json.dumps(line, ensure_ascii=False)
