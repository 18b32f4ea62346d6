"""Translated files that wait to be fetched: some, for a while, in memory."""

import collections
import re
import secrets
import time
from typing import NamedTuple

KEPT_BYTES = 32 << 20  # of all files together
KEPT_SECONDS = 600.0
LONGEST_NAME = 80  # characters


class KeptFile(NamedTuple):
    """A file, and when it was kept, as `time.monotonic()` counts."""

    name: str
    content: bytes
    since: float


class KeptFiles:
    """Files by names that nobody can guess; the oldest give way to new ones."""

    def __init__(self):
        self.size = 0
        self._files: collections.OrderedDict[str, KeptFile] = collections.OrderedDict()

    def keep(self, name: str, content: bytes) -> str:
        """Keep a file. Returns the path at which it can be fetched."""
        name = re.sub(r"[^A-Za-z0-9._-]", "_", name)[-LONGEST_NAME:]
        key = f"{secrets.token_urlsafe(24)}.{name}"
        self._files[key] = KeptFile(name, content, time.monotonic())
        self.size += len(content)
        self._forget()
        return f"download_file/{key}"

    def get(self, key: str) -> KeptFile | None:
        """Return a file that is kept."""
        self._forget()
        return self._files.get(key)

    def _forget(self) -> None:
        latest = time.monotonic() - KEPT_SECONDS
        while self._files:
            oldest = next(iter(self._files.values()))
            if self.size <= KEPT_BYTES and oldest.since > latest:
                return
            self._files.popitem(last=False)
            self.size -= len(oldest.content)
