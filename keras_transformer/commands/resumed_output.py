"""The output of a command that may be killed: it goes on after what is written when the same command is run again."""

import contextlib
import hashlib
import io
import json
import logging
import os
import pathlib
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

from keras_transformer.ground.errors import ConfigError, InputError, UserError
from keras_transformer.ground.files import write_atomically
from keras_transformer.ground.locks import locked
from keras_transformer.ground.notations import json_of
from keras_transformer.text.formats.parts import bytes_of

log = logging.getLogger("keras_transformer")

Packed = Callable[[bytes], bytes]


class ResumedOutput:
    """A file that is written part by part: OUTPUT.unfinished until it is complete, with OUTPUT.journal beside it.

    The journal says how many parts of the input are done, how many bytes of output they are, and their hash. Each call
    of `write` is on the disk before the next one. One process at a time has the files.

    Args:
        path: the output.
        work: everything that decides what is written, beside the input; as JSON.
        packed: returns the output, if it is another file than what is written, such as an archive.

    Raises ConfigError if the files are of other work, so that nothing is lost, or if another process has them.
    """

    def __init__(self, path: pathlib.Path, work: dict[str, Any], packed: Packed | None = None):
        self.path, self.work, self._packed = path, json_of(json.dumps(work)), packed
        self.unfinished, self.journal = (path.with_name(f"{path.name}.{end}") for end in ("unfinished", "journal"))
        self._file, self._hash = locked(self.unfinished), hashlib.sha256()
        self.done = 0  # parts of the input that are read and whose output is written
        try:
            self._start = self._read()
        except ConfigError:
            self.close()
            raise

    def close(self) -> None:
        """Let others have the files."""
        with contextlib.suppress(OSError):  # what could not be written, of which `write` has told
            self._file.close()

    def _read(self) -> dict[str, Any]:
        """Return the journal. If there is none, or less output than it says, the work begins anew."""
        size = self._file.seek(0, os.SEEK_END)
        try:
            journal = json_of(self.journal.read_bytes())
            parts, length, _, work = journal["parts"], journal["bytes"], journal["sha256"], journal["work"]
        except (OSError, ValueError, LookupError, TypeError):
            journal = {"parts": 0}
            self._file.truncate(0)
            return journal
        if not size:  # it was removed
            return {"parts": 0}
        if work != self.work:
            raise ConfigError(
                f"{self.unfinished} has what another model, search or format wrote: remove it to start from the "
                "beginning, or give another --output."
            )
        if length > size:
            log.warning("%s lacks what %s says: starting from the beginning", self.unfinished, self.journal)
            self._file.truncate(0)
            return {"parts": 0}
        self._file.truncate(length)
        log.info("%s has %s parts of the input: going on after them", self.unfinished, f"{parts:,}")
        return journal

    def has(self, part: str) -> bool:
        """Return whether the output of the next part of the input is written already.

        Raises ConfigError if the parts that are done were others.
        """
        if self.done >= self._start["parts"]:
            return False
        self._note(part)
        if self.done == self._start["parts"] and self._hash.hexdigest() != self._start["sha256"]:
            raise self._of_another_input()
        return True

    def check_end(self) -> None:
        """Raises ConfigError if the input ended before the parts that are done."""
        if self.done < self._start["parts"]:
            raise self._of_another_input()

    def _of_another_input(self) -> ConfigError:
        return ConfigError(
            f"{self.unfinished} has the translations of another input: remove it to start from the beginning, or give "
            "another --output."
        )

    def _note(self, part: str) -> None:
        self._hash.update(f"{len(part)}\n".encode() + part.encode("utf-8", "surrogatepass"))
        self.done += 1

    def write(self, parts: Iterable[str], texts: Iterable[str]) -> None:
        """Write the output of the parts that come next. Raises UserError if it cannot be written: the disk is full."""
        content = bytes_of("".join(texts))
        try:
            self._file.write(content)
            self._file.flush()
            os.fsync(self._file.fileno())
            self._write_journal(parts)
        except OSError as error:
            raise UserError(
                f"{self.unfinished} cannot be written: {error.strerror}. The same command goes on there once it can."
            ) from None

    def _write_journal(self, parts: Iterable[str]) -> None:
        """Write down that the output of these parts is there."""
        for part in parts:
            self._note(part)
        journal = {
            "parts": self.done,
            "bytes": self._file.seek(0, os.SEEK_END),
            "sha256": self._hash.hexdigest(),
            "work": self.work,
        }
        write_atomically(self.journal, json.dumps(journal))

    def finish(self) -> None:
        """Give the output its name: it is complete."""
        if self._packed is None:
            os.replace(self.unfinished, self.path)
        else:
            write_atomically(self.path, self._packed(self.unfinished.read_bytes()))
            self.unfinished.unlink()
        self.journal.unlink(missing_ok=True)

    def explained(self, error: InputError) -> InputError:
        """Return an error of the input, with what to do next."""
        return InputError(
            f"{error} {self.unfinished} has the translations of all before it: the same command goes on there, once "
            "the input is corrected."
        )


class StandardOutput:
    """Standard output, which does not go on after a kill: the methods of ResumedOutput."""

    def __init__(self, stream: BinaryIO, packed: Packed | None = None):
        self._stream, self._packed, self.done = stream, packed, 0
        self._waiting = io.BytesIO()  # to be packed

    def has(self, part: str) -> bool:
        return False

    def check_end(self) -> None:
        pass

    def write(self, parts: Iterable[str], texts: Iterable[str]) -> None:
        stream = self._stream if self._packed is None else self._waiting
        for text in texts:
            stream.write(bytes_of(text))
        stream.flush()
        self.done += len(list(parts))

    def finish(self) -> None:
        if self._packed is not None:
            self._stream.write(self._packed(self._waiting.getvalue()))
            self._stream.flush()

    def close(self) -> None:
        pass

    def explained(self, error: InputError) -> InputError:
        return error
