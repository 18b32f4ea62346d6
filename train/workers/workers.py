"""All workers of a training as one of them sees them: its place, the devices, and what the chief sends.

The chief sends bytes, texts and files by the collectives that sum the gradients. A sum to which all others add zeros is
a copy, and an exact one, since bytes travel as integers. With one worker nothing is sent.
"""

import json
import math
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.ground.files import write_atomically
from keras_transformer.ground.notations import json_of

from .strategy import choose_strategy, describe
from .tf_config import ONLY_WORKER, Cluster, Worker

PIECE = 64 * 2**20  # bytes of a file that are sent at once
HEADER = 32  # bytes that hold the length of a text


def replicas_like_here(worker: Worker) -> int:
    """Devices of all workers together, if each has as many as this machine. Waits for no other worker."""
    return choose_strategy().num_replicas_in_sync * worker.count


class Workers:
    """Its devices, its chief, and copies of what the chief has.

    Every worker calls `text_of_chief`, `file_of_chief` and `wait` in the same order; each call waits for all workers.
    strategy: over the devices of all workers. worker: which of them this process is.
    """

    def __init__(self, strategy: tf.distribute.Strategy, worker: Worker = ONLY_WORKER):
        self.strategy, self.worker = strategy, worker

    @classmethod
    def of(cls, cluster: Cluster) -> "Workers":
        """All workers of the cluster, once they have started: see `choose_strategy`."""
        return cls(choose_strategy(cluster), cluster.worker)

    @property
    def is_chief(self) -> bool:
        return self.worker.is_chief

    @property
    def replicas(self) -> int:
        """Devices of all workers together."""
        return self.strategy.num_replicas_in_sync

    def describe(self) -> str:
        """The devices in words, for the log and the report."""
        return describe(self.strategy)

    def only_chief(self, function: Callable, *arguments: Any) -> Any:
        """Call the function on the chief. Returns what it returns; None on every other worker."""
        return function(*arguments) if self.is_chief else None

    def text_of_chief(self, text: str = "") -> str:
        """The chief's `text`, on every worker; what the others pass is ignored."""
        payload = text.encode("utf-8")
        size = int(self._bytes_of_chief(f"{len(payload):{HEADER}d}".encode(), HEADER))
        return self._bytes_of_chief(payload, size).decode("utf-8") if size else ""

    def file_of_chief(self, path: pathlib.Path | None, folder: pathlib.Path) -> pathlib.Path | None:
        """Copy the chief's file at `path` into `folder` of every other worker, under the same name.

        Returns `path` on the chief and the path of the copy on the others; None on all if the chief's `path` is None.
        """
        if self.worker.count == 1:
            return path
        facts = [path.name, path.stat().st_size] if self.is_chief and path else None
        facts = json_of(self.text_of_chief(json.dumps(facts)))
        if facts is None:
            return None
        name, size = facts
        if self.is_chief:
            for _ in self._pieces(size, path):
                pass
            return path
        write_atomically(folder / name, lambda file: file.writelines(self._pieces(size)))
        return folder / name

    def wait(self) -> None:
        """Wait until every worker has called this."""
        self.text_of_chief()

    def _pieces(self, size: int, path: pathlib.Path | None = None) -> Iterator[bytes]:
        """The file of `size` bytes, piece by piece, sent from the chief's `path`; the others pass None."""
        lengths = [min(PIECE, size - first) for first in range(0, size, PIECE)]
        if path is None:
            yield from (self._bytes_of_chief(b"", length) for length in lengths)
            return
        with open(path, "rb") as file:
            yield from (self._bytes_of_chief(file.read(length), length) for length in lengths)

    def _bytes_of_chief(self, payload: bytes, size: int) -> bytes:
        """The chief's `payload` of `size` bytes, on every worker; what the others pass is ignored."""
        if self.worker.count == 1:
            return payload
        words = np.zeros(math.ceil(size / 4), np.int32)
        if self.is_chief:
            words.view(np.uint8)[:size] = np.frombuffer(payload, np.uint8)
        total = self.strategy.reduce(tf.distribute.ReduceOp.SUM, tf.constant(words), axis=None)
        return total.numpy().tobytes()[:size]
