"""What the chief tells the other workers: bytes, texts and files, by the collectives that sum the gradients.

A sum to which all others add zeros is a copy, exact because bytes travel as integers. With one worker nothing is sent.
"""

import json
import tomllib

import numpy as np
import tensorflow as tf

from keras_transformer.config import ConfigError
from train.checkpoints import write_whole
from train.resumption import flat

PIECE = 64 * 2**20  # bytes of a file that are sent at once
HEADER = 32  # bytes that say how long a text is
OWN_KEYS = (  # paths
    "run_folder", "cache_folder", "data.train", "data.validation", "data.test", "data.data_dir", "tokenizer.model",
)  # fmt: skip


class Broadcast:
    """The chief's voice. Every worker calls the same methods in the same order; each call waits for all of them."""

    def __init__(self, strategy, share):
        self.strategy, self.share = strategy, share

    def bytes(self, payload, size):
        """The chief's `payload` of `size` bytes, on every worker; what the others give is not read."""
        if self.share.count == 1:
            return payload
        words = np.zeros(-(-size // 4), np.int32)
        if self.share.is_chief:
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
        if self.share.count == 1:
            return path
        facts = [path.name, path.stat().st_size] if self.share.is_chief and path else None
        if (facts := json.loads(self.text(json.dumps(facts)))) is None:
            return None
        name, size = facts
        if self.share.is_chief:
            for _ in self._pieces(size, path):
                pass
            return path
        write_whole(folder / name, lambda file: file.writelines(self._pieces(size)))
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


def restore_everywhere(checkpoints, model, broadcast):
    """Load the chief's newest whole checkpoint on every worker. Returns its progress, or None if there is none."""
    if not broadcast.share.is_chief:
        if copy := broadcast.file(None, checkpoints.folder):
            progress = checkpoints.restore_latest(model, model.optimizer)
            copy.unlink()
            return progress
        return None
    progress = checkpoints.restore_latest(model, model.optimizer)
    broadcast.file(checkpoints.paths()[-1] if progress else None, checkpoints.folder)
    return progress


def check_same(config, broadcast):
    """Raises ConfigError on a worker whose configuration is not the chief's; paths may differ."""
    here = flat(tomllib.loads(config.to_toml()))
    chief = flat(tomllib.loads(broadcast.text(config.to_toml())))
    differences = [
        f"{key} is {here.get(key, 'not set')!r} here and {chief.get(key, 'not set')!r} there"
        for key in sorted(here.keys() | chief.keys())
        if here.get(key) != chief.get(key) and key not in OWN_KEYS
    ]
    if differences:
        raise ConfigError(
            f"This worker's configuration is not that of worker 0: {'; '.join(differences)}. "
            "Start every worker with the same one."
        )
