"""What the chief sends to the other workers: bytes, texts and files, by the collectives that sum the gradients.

A sum to which all others add zeros is a copy, and an exact one, since bytes travel as integers. With one worker nothing
is sent.
"""

import json
import math
import pathlib
from collections.abc import Iterator

import numpy as np

from keras_transformer.files import write_atomically

from .tf_config import Worker

PIECE = 64 * 2**20  # bytes of a file that are sent at once
HEADER = 32  # bytes that hold the length of a text


class Broadcast:
    """Copies from the chief to all workers.

    Every worker calls the same methods in the same order; each call waits for all workers. strategy: the
    tf.distribute.Strategy over all of them.
    """

    def __init__(self, strategy, worker: Worker):
        self.strategy, self.worker = strategy, worker

    def copy_bytes(self, payload: bytes | None, size: int) -> bytes:
        """The chief's `payload` of `size` bytes, on every worker; what the others pass is ignored."""
        if self.worker.count == 1:
            return payload
        import tensorflow as tf

        words = np.zeros(math.ceil(size / 4), np.int32)
        if self.worker.is_chief:
            words.view(np.uint8)[:size] = np.frombuffer(payload, np.uint8)
        total = self.strategy.reduce(tf.distribute.ReduceOp.SUM, tf.constant(words), axis=None)
        return total.numpy().tobytes()[:size]

    def text(self, text: str = "") -> str:
        """The chief's `text`, on every worker."""
        payload = text.encode("utf-8")
        size = int(self.copy_bytes(f"{len(payload):{HEADER}d}".encode(), HEADER))
        return self.copy_bytes(payload, size).decode("utf-8") if size else ""

    def file(self, path: pathlib.Path | None, folder: pathlib.Path) -> pathlib.Path | None:
        """Copy the chief's file at `path` into `folder` of every other worker, under the same name.

        Returns `path` on the chief and the path of the copy on the others; None on all if the chief's `path` is None.
        """
        if self.worker.count == 1:
            return path
        facts = [path.name, path.stat().st_size] if self.worker.is_chief and path else None
        facts = json.loads(self.text(json.dumps(facts)))
        if facts is None:
            return None
        name, size = facts
        if self.worker.is_chief:
            for _ in self._pieces(size, path):
                pass
            return path
        write_atomically(folder / name, lambda file: file.writelines(self._pieces(size)))
        return folder / name

    def _pieces(self, size: int, path: pathlib.Path | None = None) -> Iterator[bytes]:
        """The file of `size` bytes, piece by piece, sent from the chief's `path`; the others give None."""
        lengths = [min(PIECE, size - first) for first in range(0, size, PIECE)]
        if path is None:
            yield from (self.copy_bytes(None, length) for length in lengths)
            return
        with open(path, "rb") as file:
            yield from (self.copy_bytes(file.read(length), length) for length in lengths)

    def wait(self) -> None:
        """Wait until every worker has called this."""
        self.text()
