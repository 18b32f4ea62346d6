"""Why training ends before its last step: it was asked to (SIGTERM, Ctrl-C), it diverged, or a worker is gone."""

import contextlib
import logging
import signal

log = logging.getLogger("train")


class StopRequest:
    """Whether somebody has asked training to stop. `is_made` is read after every step."""

    def __init__(self):
        self.is_made = False

    @contextlib.contextmanager
    def listening(self):
        """Within: the first SIGTERM or Ctrl-C asks, a second Ctrl-C leaves at once."""
        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        for number in before:
            signal.signal(number, self._ask)
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _ask(self, number, frame):
        self.is_made = True
        log.info("%s: stopping after this step; once more to leave at once", signal.Signals(number).name)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
