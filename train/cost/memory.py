"""How much memory is free for training."""

import pathlib
import re

MEMORY = pathlib.Path("/proc/meminfo")
CONTAINER = pathlib.Path("/sys/fs/cgroup")  # where Linux says what a container may take (cgroups, version 2)


def free_memory() -> int | None:
    """Return the bytes of memory that are free for training on a CPU; None on a GPU, or if the system does not say.

    In a container with a limit, that is what is left of the limit, if the machine has more.
    """
    if has_gpu():
        return None
    limits = [free for free in (free_of_machine(), free_of_container()) if free is not None]
    return min(limits, default=None)


def has_gpu() -> bool:
    import tensorflow as tf  # here, so that estimates need no TensorFlow

    return bool(tf.config.list_logical_devices("GPU"))


def free_of_machine() -> int | None:
    """Return the bytes that are available on the machine; None if it does not say."""
    if not MEMORY.exists():
        return None
    available = re.search(r"^MemAvailable:\s*(\d+) kB", MEMORY.read_text(encoding="ascii"), re.MULTILINE)
    return int(available[1]) * 1024 if available else None


def free_of_container() -> int | None:
    """Return the bytes left of the container's limit, not counting cached files; None without a limit."""
    try:
        limit, used, statistics = (
            (CONTAINER / f"memory.{name}").read_text(encoding="ascii").strip() for name in ("max", "current", "stat")
        )
    except OSError:
        return None
    if limit == "max":
        return None
    files = re.search(r"^inactive_file (\d+)$", statistics, re.MULTILINE)
    return max(0, int(limit) - int(used) + (int(files[1]) if files else 0))


def gigabytes(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
