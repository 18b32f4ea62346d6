"""Results of a long command that is stopped, so that it goes on where it was."""

import json
import logging
import pathlib
from collections.abc import Sequence
from typing import Any

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.locks import locked
from keras_transformer.ground.notations import json_of

log = logging.getLogger("train")


class Unfinished:
    """The results of a command so far: the file OUTPUT.unfinished, until the output itself is written.

    The first line is a JSON description of the work; each further line is one result. An incomplete last line is
    redone. One process at a time has the file.

    Args:
        output: the file that the command will write in the end.
        description: everything that decides the results, as JSON.

    Raises ConfigError if the file has another description, so that its results are not lost, or if another process has
    the file.
    """

    def __init__(self, output: pathlib.Path, description: dict[str, Any]):
        self.path = output.with_name(f"{output.name}.unfinished")
        self.description = json_of(json.dumps(description))
        self._file = locked(self.path)
        try:
            self.results = self._read()
        except ConfigError:
            self.close()
            raise

    def _read(self) -> list[Any]:
        """Return the results in the file. Cuts off what is damaged, and writes the first line if there is none."""
        self._file.seek(0)
        content = self._file.read()
        whole = content[: content.rfind(b"\n") + 1]
        intact, length = [], 0  # values and bytes
        for line in whole.splitlines(keepends=True):
            try:
                intact.append(json_of(line))
            except ValueError:
                log.warning("%s is damaged in line %d: only the lines before it are used", self.path, len(intact) + 1)
                break
            length += len(line)
        if not intact:
            self._file.truncate(0)
            self._write([self.description])
            return []
        description, *results = intact
        if description != self.description:
            raise ConfigError(
                f"{self.path} has {len(results):,} results of another text, model or search: remove it to start from "
                "the beginning, or give another --output."
            )
        self._file.truncate(length)
        log.info("%s has %s results: going on after them", self.path, f"{len(results):,}")
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
