"""What Ctrl-C, SIGTERM and a closed pipe do to a command: end it at once, or let it clean up first.

A command calls this before its other imports, which take a second, so nothing slow is imported here.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn


def end_on_interrupt() -> None:
    """Let the system end the process on Ctrl-C, at any moment and without a traceback.

    Python would raise KeyboardInterrupt: not at all during a long compilation, and lost if it happens inside a callback
    of the garbage collector. JAX, which keras-hub imports, has one, and imports collect often; so a command that was
    interrupted while it started could run on to its end.

    The first process of a container gets handlers for SIGTERM and Ctrl-C: Linux keeps from it what it has no handler
    for, and a container that is stopped while it starts would run on until it is killed.
    """
    if os.getpid() == 1:
        for number in signals_to_handle():
            signal.signal(number, end_at_once)
        return
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # otherwise this process was started to ignore it
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def end_at_once(number: int, frame: FrameType | None) -> NoReturn:
    """End the process with the code by which a shell reports one that was ended by this signal."""
    os._exit(128 + number)


def end_on_signals() -> None:
    """Let Ctrl-C, and a reader such as `head` that closes the pipe early, end the process without a traceback."""
    end_on_interrupt()
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


@contextlib.contextmanager
def end_on_closed_output() -> Iterator[None]:
    """Within, a reader that closes the pipe early ends the process, as `end_on_signals` has it.

    For a command that also writes to sockets: a socket that closes early is an error to report, not the end of the
    process.
    """
    try:
        yield
    except BrokenPipeError:
        if not hasattr(signal, "SIGPIPE"):
            raise
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.raise_signal(signal.SIGPIPE)


@contextlib.contextmanager
def signals_raise() -> Iterator[None]:
    """Within, Ctrl-C and SIGTERM raise SystemExit, so that `finally` removes what is half-written."""

    def exit_process(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)  # as a shell reports a process that was ended by this signal

    with handling(exit_process):
        yield


def signals_to_handle() -> list[signal.Signals]:
    """Return SIGTERM and SIGINT, without those that this process was started to ignore, as a background job SIGINT."""
    return [number for number in (signal.SIGTERM, signal.SIGINT) if signal.getsignal(number) is not signal.SIG_IGN]


@contextlib.contextmanager
def handling(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Within, SIGTERM and SIGINT go to this handler, unless this process was started to ignore them."""
    before = {number: signal.signal(number, handler) for number in signals_to_handle()}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)
