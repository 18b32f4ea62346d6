"""The folder of the output: parts that are finished stay finished, whatever ends the command.

    OUT/_unfinished/plan.json   what is done how; the same command finds it and goes on
    OUT/_unfinished/1/part-*    what the first attempt wrote: Spark puts a part there by one renaming, when it is whole
    OUT/_unfinished/2/part-*    the second one wrote the parts that were missing, and empty ones for the others,
    OUT/_unfinished/2.left_out  whose numbers are here: if one is removed since it is damaged, it is missing again
    OUT/part-*, OUT/_SUCCESS    when all are there

Of several parts of a number, that of the earliest attempt counts. Names that begin with _ are no data to Spark.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from .errors import ClusterError
from .storage import Storage

UNFINISHED = "_unfinished"
SUCCESS = "_SUCCESS"
LEFT_OUT = ".left_out"


class Output:
    """The folder OUT. `check` looks at it, `begin` makes it, `publish` ends it."""

    def __init__(self, storage: Storage, folder: str):
        self._storage, self.folder = storage, folder.rstrip("/") or "/"
        self._unfinished = f"{self.folder}/{UNFINISHED}"
        self._plan = f"{self._unfinished}/plan.json"

    def check(self, plan: dict[str, Any]) -> None:
        """Raises ClusterError if the folder is finished, holds something else, or was begun with another plan."""
        names = self._storage.names(self.folder)
        if self._storage.exists(self.folder) and not self._storage.is_folder(self.folder):
            raise ClusterError(f"--to is {self.folder}, which is a file: name a new folder.")
        if not self._storage.exists(self._plan):
            if set(names) - {UNFINISHED}:
                raise ClusterError(
                    f"--to is {self.folder}, which exists already: name a new folder, or remove it first."
                )
        elif changed := [name for name, value in self.begun().items() if value != plan.get(name)]:
            raise ClusterError(
                f"--to is {self.folder}, which another command began: it differs in {', '.join(changed)}. Name a new "
                "folder, or remove it first."
            )

    def begin(self, plan: dict[str, Any]) -> None:
        """Write the plan into a new folder; one that `check` has seen is left as it is."""
        if not self._storage.exists(self._plan):
            self._storage.write(self._plan, json.dumps(plan, indent=2) + "\n")

    def begun(self) -> dict[str, Any]:
        """Return the plan that the folder was begun with; an empty one if it is new."""
        return self._storage.read_json(self._plan) if self._storage.exists(self._plan) else {}

    def finished_parts(self) -> dict[int, str]:
        """Return the paths of finished parts by number."""
        attempts = sorted((name for name in self._storage.names(self._unfinished) if name.isdecimal()), key=int)
        parts: dict[int, str] = {}
        for folder in (self.folder, *(f"{self._unfinished}/{name}" for name in attempts)):
            left_out = self._left_out(folder)
            for name in self._storage.names(folder):
                if (number := re.match(r"part-(\d+)", name)) and int(number[1]) not in left_out:
                    parts.setdefault(int(number[1]), f"{folder}/{name}")
        return parts

    def _left_out(self, attempt: str) -> set[int]:
        """Return the numbers of the parts that an attempt wrote empty, since they were finished before."""
        path = f"{attempt}{LEFT_OUT}"
        return set(self._storage.read_json(path)) if self._storage.exists(path) else set()

    def next_attempt(self, finished: Iterable[int]) -> str:
        """Return the path of a folder that the next attempt may write, which leaves out the finished parts."""
        numbers = [int(name) for name in self._storage.names(self._unfinished) if name.isdecimal()]
        attempt = f"{self._unfinished}/{max(numbers, default=0) + 1}"
        self._storage.write(f"{attempt}{LEFT_OUT}", json.dumps(sorted(finished)))
        return attempt

    def publish(self) -> None:
        """Move the finished parts into the folder and remove what is left of the attempts."""
        for path in self.finished_parts().values():
            folder, _, name = path.rpartition("/")
            if folder != self.folder:
                self._storage.rename(path, f"{self.folder}/{name}")
        self._storage.write(f"{self.folder}/{SUCCESS}", "")
        self._storage.remove(self._unfinished)
