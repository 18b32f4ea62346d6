"""Memory that a process has freed: kept for the next step of a training, or given back to the system."""

import ctypes
import sys
from collections.abc import Callable

# Parameters of glibc's mallopt (malloc.h) and their new values
KEPT = {
    -4: 0,  # M_MMAP_MAX: no block has a mapping of its own, which ends when the block is freed
    -1: -1,  # M_TRIM_THRESHOLD: what is free at the end of the heap is not given back
    -8: 1,  # M_ARENA_MAX: all threads share the heap of the first one; those of others hold no block of over 64 MB
}


def keep_freed_memory() -> bool:
    """Let the C library reuse the memory that was freed. Returns whether it can: glibc can, musl and macOS cannot.

    A training step under XLA allocates one block for all that it computes in between, hundreds of megabytes, and frees
    it at its end. glibc maps such a block anew each time, and the system clears each page of it at its first use: 0.4
    of the time of a step of a small model. Afterwards the process keeps as much memory as it once had at most. Call it
    before the first operation of TensorFlow: a thread that has run keeps the heap that it has.
    """
    mallopt = of_c_library("mallopt")
    return mallopt is not None and all([mallopt(parameter, value) for parameter, value in KEPT.items()])


def return_freed_memory() -> None:
    """Give the system what this process has freed: glibc would keep the 0.1 GB or more that loading a graph frees."""
    if trim := of_c_library("malloc_trim"):
        trim(0)


def of_c_library(name: str) -> Callable[..., int] | None:
    """A function that glibc has beyond the standard; None on other systems and with other C libraries."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
