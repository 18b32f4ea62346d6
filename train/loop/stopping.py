"""Requests to stop training before its last step: SIGTERM and Ctrl-C."""

import contextlib
import logging
import signal
from collections.abc import Iterator

log = logging.getLogger("train")


class StopRequest:
    """Whether this process has been asked to stop training. `is_alone`: it trains without other workers."""

    def __init__(self, is_alone: bool = True):
        self.is_made, self.is_alone = False, is_alone

    def ends_training(self, stop_requests: float) -> bool:
        """Return whether training ends after this step.

        stop_requests: the sum over all workers that the step itself has logged. Workers must end after the same step,
        so each goes by this sum; a request that is made during a step is in the sum of the next one.
        """
        return self.is_made if self.is_alone else stop_requests > 0

    @contextlib.contextmanager
    def listening(self) -> Iterator["StopRequest"]:
        """Within, the first SIGTERM or Ctrl-C makes the request, and a second Ctrl-C ends the process at once."""
        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        for number in before:
            signal.signal(number, self._make)
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _make(self, number, frame) -> None:
        self.is_made = True
        log.info("%s: stopping after this step; press Ctrl-C to end at once", signal.Signals(number).name)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
