"""Work on a long text that a command takes up again where it was stopped."""

import json
import logging
import pathlib
from collections.abc import Sequence
from typing import Any

from keras_transformer.files import write_atomically

log = logging.getLogger("train")


class Unfinished:
    """What a command has done of its work so far: the file OUTPUT.unfinished, until the output itself is written.

    Its first line says of what it is the work, as JSON; each other line is one result. Work of another kind, and lines
    that were not written to their end, are done anew.

    Args:
        output: the file that the command will write in the end.
        of: everything that decides the results, as JSON.
    """

    def __init__(self, output: pathlib.Path, of: dict[str, Any]):
        self.path, self.of = output.with_name(f"{output.name}.unfinished"), json.loads(json.dumps(of))
        self.results = self._read()
        write_atomically(self.path, written([self.of, *self.results]))  # without a line that has no end
        self._file = open(self.path, "a", encoding="utf-8")

    def _read(self) -> list[Any]:
        try:
            first, *lines = self.path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
            if json.loads(first) == self.of:
                results = [json.loads(line) for line in lines]
                log.info("%s has %s results already: going on after them", self.path, f"{len(results):,}")
                return results
            log.warning("%s is of another text, model or search: beginning anew", self.path)
        except FileNotFoundError:
            pass
        except ValueError:
            log.warning("%s is damaged: beginning anew", self.path)
        return []

    def add(self, results: Sequence[Any]) -> None:
        """Keep further results."""
        self.results.extend(results)
        self._file.write(written(results))
        self._file.flush()

    def close(self) -> None:
        """Close the file, which stays."""
        self._file.close()

    def finish(self) -> None:
        """Remove the file: the output is written."""
        self.close()
        self.path.unlink()


def written(lines: Sequence[Any]) -> str:
    """Return values as lines of JSON."""
    return "".join(f"{json.dumps(line)}\n" for line in lines)
