"""The memory of a program with all of its processes (Linux)."""

import os

import psutil


def session_bytes(session: int) -> int:
    """Return the memory of all processes of a session now; pages that several of them share count once.

    It is the sum of their proportional set sizes: of a page that n processes share, each has 1/n. A process that has
    ended has none.
    """
    return sum(proportional_bytes(pid) for pid in psutil.pids() if is_in(session, pid))


def is_in(session: int, pid: int) -> bool:
    """Whether a process belongs to a session; not if it has ended."""
    try:
        return os.getsid(pid) == session
    except ProcessLookupError:
        return False


def proportional_bytes(pid: int) -> int:
    """Return the proportional set size of a process; 0 if it has ended."""
    try:
        return psutil.Process(pid).memory_full_info().pss
    except psutil.Error:
        return 0
