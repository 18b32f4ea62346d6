"""The packings of a corpus, one per epoch: the next one is made in the background while one is in use."""

import concurrent.futures
import threading

import numpy as np

from train.config import RowLengths
from train.data.encoding import EncodedPairs
from train.data.packing import Packing, pack


class Epochs:
    """The Packing of all pairs in each epoch, a function of (pairs, row lengths, seed, epoch) alone.

    At most two packings are kept: about 100 MB for a corpus of millions of pairs.
    """

    def __init__(self, pairs: EncodedPairs, row_lengths: RowLengths, seed: int | tuple[int, ...]):
        self.pairs, self.row_lengths = pairs, row_lengths
        self.seeds = seed if isinstance(seed, tuple) else (seed,)
        self._thread = concurrent.futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="packing")
        self._packings = {}  # epoch -> Future
        self._lock = threading.Lock()

    def packing(self, epoch: int) -> Packing:
        """The Packing of `epoch`; waits until it is made. Raises whatever went wrong while it was made."""
        with self._lock:
            for other in self._packings.keys() - {epoch, epoch + 1}:
                self._packings.pop(other).cancel()
            future = self._begin(epoch)
        return future.result()

    def begin(self, epoch: int) -> None:
        """Start to make the Packing of `epoch` in the background."""
        with self._lock:
            self._begin(epoch)

    def _begin(self, epoch: int) -> concurrent.futures.Future:
        if epoch not in self._packings:
            self._packings[epoch] = self._thread.submit(self._pack, epoch)
        return self._packings[epoch]

    def _pack(self, epoch: int) -> Packing:
        rng = np.random.default_rng([*self.seeds, epoch])
        return pack(self.pairs.source.lengths, self.pairs.target.lengths, self.row_lengths, rng)
