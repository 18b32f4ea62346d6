"""What the chief tells the other workers: bytes, texts and files, by the collectives that sum the gradients.

A sum to which all others add zeros is a copy, exact because bytes travel as integers. With one worker nothing is sent.
"""

import json

import numpy as np

from keras_transformer.files import write_atomically

PIECE = 64 * 2**20  # bytes of a file that are sent at once
HEADER = 32  # bytes that say how long a text is


class Broadcast:
    """The chief's voice. Every worker calls the same methods in the same order; each call waits for all of them."""

    def __init__(self, strategy, worker):
        self.strategy, self.worker = strategy, worker

    def bytes(self, payload, size):
        """The chief's `payload` of `size` bytes, on every worker; what the others give is not read."""
        if self.worker.count == 1:
            return payload
        import tensorflow as tf

        words = np.zeros(-(-size // 4), np.int32)
        if self.worker.is_chief:
            words.view(np.uint8)[:size] = np.frombuffer(payload, np.uint8)
        total = self.strategy.reduce(tf.distribute.ReduceOp.SUM, tf.constant(words), axis=None)
        return total.numpy().tobytes()[:size]

    def text(self, text=""):
        """The chief's `text`, on every worker."""
        payload = text.encode("utf-8")
        size = int(self.bytes(f"{len(payload):{HEADER}d}".encode(), HEADER))
        return self.bytes(payload, size).decode("utf-8") if size else ""

    def file(self, path, folder):
        """The chief's file at `path` on every worker: the path of a copy in `folder`, or on the chief `path` itself.

        None, where the chief's path is None.
        """
        if self.worker.count == 1:
            return path
        facts = [path.name, path.stat().st_size] if self.worker.is_chief and path else None
        if (facts := json.loads(self.text(json.dumps(facts)))) is None:
            return None
        name, size = facts
        if self.worker.is_chief:
            for _ in self._pieces(size, path):
                pass
            return path
        write_atomically(folder / name, lambda file: file.writelines(self._pieces(size)))
        return folder / name

    def _pieces(self, size, path=None):
        lengths = [min(PIECE, size - first) for first in range(0, size, PIECE)]
        if path is None:
            yield from (self.bytes(None, length) for length in lengths)
            return
        with open(path, "rb") as file:
            yield from (self.bytes(file.read(length), length) for length in lengths)

    def wait(self):
        """Until every worker has come here."""
        self.text()
