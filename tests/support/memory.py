"""Pages that the system gives a process, which it counts as faults."""

import ctypes
import platform
import resource
import threading

import pytest

PAGES = 100_000  # of a large block
PAGE = 4096
with_glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library has no mallopt")


def faults_in_a_new_thread():
    """How many pages the system gives a thread that writes to a large block and frees it."""
    faults = []
    thread = threading.Thread(target=lambda: faults.append(faults_of_a_large_block()))
    thread.start()
    thread.join()
    return faults[0]


def faults_of_a_large_block():
    """How many pages the system gives this thread for a block of PAGES pages, which is written to and freed."""
    libc, size = ctypes.CDLL(None), PAGES * PAGE
    libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = (
        ctypes.c_void_p,
        [ctypes.c_size_t],
        [ctypes.c_void_p],
    )
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    block = libc.malloc(size)
    ctypes.memset(block, 1, size)
    libc.free(block)
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before
