"""What native libraries print to stderr, which Python's `contextlib.redirect_stderr` does not see."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import BinaryIO


@contextlib.contextmanager
def stderr_into(file: BinaryIO) -> Iterator[None]:
    """Within, what is written to descriptor 2 goes into a file, which has a descriptor. Nothing does without a stderr.

    A process has one stderr: threads must not do this at once.
    """
    try:
        stderr = os.dup(2)
    except OSError:  # a service manager closed it
        yield
        return
    flush()
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        flush()
        os.dup2(stderr, 2)
        os.close(stderr)


def flush() -> None:
    if sys.stderr is not None:  # as after a start without one
        sys.stderr.flush()
