"""Why training ends before its last step: it was asked to (SIGTERM, Ctrl-C), it diverged, or a worker is gone."""

import contextlib
import logging
import signal

log = logging.getLogger("train")

EXIT_CODE = 75  # EX_TEMPFAIL of sysexits.h: not done, start again


class DivergenceError(ValueError):
    """A loss or gradient that is no number any more, or a loss that explodes.

    `finding`: when, on which batch, and what was seen. The message also says what to do.
    """

    def __init__(self, finding, advice):
        super().__init__(f"{finding} {advice}")
        self.finding = finding


class Interrupted(Exception):
    """Training stopped because it was asked to, after the checkpoint of `step`."""

    def __init__(self, step):
        super().__init__(f"Stopped after step {step}; its checkpoint is written. The same command goes on from there.")
        self.step = step


class WorkerLost(Exception):
    """Another worker of the cluster is gone, or never came; the message says which, and how to go on."""


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
