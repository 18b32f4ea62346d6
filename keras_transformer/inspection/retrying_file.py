"""A file to append records to, which outlives a full disk."""

import logging
import os
import pathlib

from keras_transformer.ground.errors import first_line_of

log = logging.getLogger("keras_transformer")


class RetryingFile:
    """A file to append records to. Records that a full disk refuses are kept in memory and written once there is room.

    A record is in the hands of the system when `write` returns, so that it survives the end of the process.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = pathlib.Path(path)
        self.file = open(self.path, "ab", buffering=0)
        self.pending = bytearray()  # what is not yet in the file; it may begin within a record
        self.refused = 0  # records of which something is pending

    def write(self, record: bytes) -> None:
        """Append a record; never raises OSError. The first refusal is logged as an error, and so is its end."""
        self.pending += record
        try:
            while self.pending:
                del self.pending[: self.file.write(self.pending)]
        except OSError as error:
            if not self.refused:
                log.error("%s cannot be written: %s Training continues; make room.", self.path, first_line_of(error))
            self.refused += 1
        else:
            if self.refused:
                log.info("%s can be written again, and has the %d records that were refused", self.path, self.refused)
            self.refused = 0

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""

    def close(self) -> None:
        """Try once more to write what was refused, log an error if that fails, and close the file."""
        if self.refused:
            self.write(b"")
        if self.refused:
            log.error("%s is incomplete: its last records could not be written and are lost", self.path)
        self.file.close()
