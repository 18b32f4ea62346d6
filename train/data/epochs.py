"""The epochs of a corpus: the next one is prepared in the background while one is in use."""

import concurrent.futures
import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..config.training import RowLengths
from .encoding import EncodedPairs
from .packing import Packing, pack

Redraw = Callable[[EncodedPairs, np.random.Generator, Callable[[], bool]], EncodedPairs]


class Epoch(NamedTuple):
    """The pairs of an epoch, and which of them each packed row holds."""

    pairs: EncodedPairs
    packing: Packing


class Epochs:
    """Every Epoch of a corpus, a function of (pairs, row lengths, seed, number) alone.

    redraw: from the pairs, a Generator and a function that is true once to give up, to as many pairs in the same order,
    in other pieces or changed, drawn anew for each epoch; None leaves the pairs as they are.

    An epoch has all pairs, each once, or what their Mixture takes of them. At most two epochs are kept: of millions of
    pairs, each takes about 100 MB, and the size of the ids if these are drawn anew.
    """

    def __init__(
        self,
        pairs: EncodedPairs,
        row_lengths: RowLengths,
        seed: int | tuple[int, ...],
        redraw: Redraw | None = None,
    ):
        self.pairs, self.row_lengths, self.redraw = pairs, row_lengths, redraw
        self.seeds = seed if isinstance(seed, tuple) else (seed,)
        self._thread = concurrent.futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="packing")
        self._epochs = {}  # number -> Future
        self._lock, self._given_up = threading.Lock(), threading.Event()

    def epoch(self, number: int) -> Epoch:
        """Return epoch `number`; wait until it is prepared. Raises whatever went wrong with it."""
        with self._lock:
            for other in self._epochs.keys() - {number, number + 1}:
                self._epochs.pop(other).cancel()
            future = self._future_of(number)
        return future.result()

    def prepare_ahead(self, number: int) -> None:
        """Start to prepare epoch `number` in the background."""
        with self._lock:
            self._future_of(number)

    def give_up(self) -> None:
        """Give up what is being prepared: waiting for it raises CancelledError, and asking again starts anew."""
        with self._lock:
            self._given_up.set()
            self._given_up = threading.Event()
            self._epochs = {number: future for number, future in self._epochs.items() if future.done()}

    def _future_of(self, number: int) -> concurrent.futures.Future:
        if number not in self._epochs:
            self._epochs[number] = self._thread.submit(self._prepare, number, self._given_up.is_set)
        return self._epochs[number]

    def _prepare(self, number: int, gives_up: Callable[[], bool]) -> Epoch:
        if gives_up():
            raise concurrent.futures.CancelledError("The epoch is not needed any more.")
        rng = np.random.default_rng([*self.seeds, number])
        pairs = self.redraw(self.pairs, rng, gives_up) if self.redraw else self.pairs
        source_lengths, target_lengths = pairs.source.lengths, pairs.target.lengths
        if self.pairs.mixture is None:
            return Epoch(pairs, pack(source_lengths, target_lengths, self.row_lengths, rng))
        taken = self.pairs.mixture.pairs_of_epoch(self.seeds, number)
        packing = pack(source_lengths[taken], target_lengths[taken], self.row_lengths, rng)
        return Epoch(pairs, packing._replace(pairs=taken[packing.pairs]))
