"""The packings of a corpus, one after the other: the next is made while one is in use."""

import concurrent.futures
import threading

import numpy as np

from train.data.packing import pack


class Epochs:
    """Epoch by epoch the Packing of all pairs, a function of (pairs, row lengths, seed, epoch) alone.

    At most two are kept, so that a corpus of millions of pairs takes some 100 MB here.
    """

    def __init__(self, pairs, source_row_length, row_length, seed):
        self.pairs = pairs
        self.row_lengths = source_row_length, row_length
        self.seed = seed
        self._thread = concurrent.futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="packing")
        self._packings = {}  # epoch -> Future
        self._lock = threading.Lock()

    def packing(self, epoch):
        """The Packing of `epoch`, waited for where it is not yet made. Raises what went wrong in its making."""
        with self._lock:
            for other in self._packings.keys() - {epoch, epoch + 1}:
                self._packings.pop(other).cancel()
            future = self._begin(epoch)
        return future.result()

    def begin(self, epoch):
        """Start to make the Packing of `epoch` in the background."""
        with self._lock:
            self._begin(epoch)

    def _begin(self, epoch):
        if epoch not in self._packings:
            self._packings[epoch] = self._thread.submit(self._pack, epoch)
        return self._packings[epoch]

    def _pack(self, epoch):
        rng = np.random.default_rng([*np.atleast_1d(self.seed).tolist(), epoch])
        return pack(self.pairs.source.lengths, self.pairs.target.lengths, *self.row_lengths, rng)
