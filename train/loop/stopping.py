"""Requests to stop training before its last step: SIGTERM and Ctrl-C."""

import contextlib
import logging
import signal
from collections.abc import Iterator
from types import FrameType

from keras_transformer.commands.signals import handling, signals_to_handle
from keras_transformer.ground.errors import Interrupted

log = logging.getLogger("train")


class StopRequest:
    """Whether this process has been asked to stop training. `is_alone`: it trains without other workers."""

    def __init__(self, is_alone: bool = True):
        self.is_made, self.is_alone = False, is_alone

    def ends_training(self, stop_requests: float) -> bool:
        """Return whether training ends after this step.

        stop_requests: the sum over all workers that the step itself has logged. All workers decide by this sum, and so
        end after the same step; a request that is made during a step is in the sum of the next one.
        """
        return self.is_made if self.is_alone else stop_requests > 0

    @contextlib.contextmanager
    def listening(self) -> Iterator["StopRequest"]:
        """Within, the first SIGTERM or Ctrl-C makes the request, and a second Ctrl-C ends the process at once."""
        with handling(self._make):
            yield self

    def _make(self, number: int, frame: FrameType | None) -> None:
        self.is_made = True
        log.info("%s: stopping after this step; press Ctrl-C to end at once", signal.Signals(number).name)
        if signal.SIGINT in signals_to_handle():
            signal.signal(signal.SIGINT, signal.SIG_DFL)


class _Signal(BaseException):
    """Raised by a signal wherever the program is: libraries take an Exception for one of their own."""


@contextlib.contextmanager
def interrupted_by_signals(message: str) -> Iterator[None]:
    """Within, SIGTERM or Ctrl-C raises Interrupted at once, with this message: for work that is soon done again."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise _Signal

    try:
        with handling(interrupt):
            yield
    except _Signal:
        raise Interrupted(message) from None
