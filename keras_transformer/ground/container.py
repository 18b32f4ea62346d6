"""What a container, or another control group of Linux, lets this process take: cores and memory (cgroups 1 and 2)."""

import math
import pathlib
import re
from collections.abc import Iterator

ROOT = pathlib.Path("/sys/fs/cgroup")
OWN_GROUPS = pathlib.Path("/proc/self/cgroup")  # lines such as 0::/system.slice, or 4:memory:/docker/4f1e
NO_LIMIT = 2**60  # cgroups 1 writes a number above this, rounded to pages, where version 2 writes "max"


def core_limit() -> int | None:
    """Return how many cores may be kept busy, rounded up (`docker run --cpus=1.5`); None without a limit."""
    limits = []
    for group in groups("cpu"):
        quota, _, period = text_of(group / "cpu.max").partition(" ")
        if not quota:
            quota, period = (text_of(group / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
        if quota.isdigit() and period.isdigit() and int(period):  # microseconds: of the processor, and of the clock
            limits.append(math.ceil(int(quota) / int(period)))  # "max" and -1 are no limit
    return max(1, min(limits)) if limits else None


def memory_limit() -> int | None:
    """Return how many bytes may be used at most; None without a limit."""
    return min((limit for limit, _ in memory_of_groups()), default=None)


def memory_left() -> int | None:
    """Return how many bytes of the limit are left, not counting cached files as used; None without a limit."""
    return min((max(0, limit - used) for limit, used in memory_of_groups()), default=None)


def memory_of_groups() -> Iterator[tuple[int, int]]:
    """Yield the limit of each group that has one, and what is used of it, both in bytes."""
    for group in groups("memory"):
        limit = text_of(group / "memory.max") or text_of(group / "memory.limit_in_bytes")
        used = text_of(group / "memory.current") or text_of(group / "memory.usage_in_bytes")
        if limit.isdigit() and used.isdigit() and int(limit) < NO_LIMIT:
            statistics = text_of(group / "memory.stat")
            files = re.search(r"^total_inactive_file (\d+)$", statistics, re.MULTILINE) or re.search(
                r"^inactive_file (\d+)$", statistics, re.MULTILINE
            )
            yield int(limit), int(used) - (int(files[1]) if files else 0)


def groups(controller: str) -> Iterator[pathlib.Path]:
    """Yield the folders of the groups that this process is in, from its own up to the root: each may have a limit.

    controller: "cpu" or "memory". A container often sees its own group as the root, whatever OWN_GROUPS says.
    """
    for root, own in ((ROOT, own_group("")), (ROOT / controller, own_group(controller))):
        place = root / own
        for folder in (place, *place.parents):
            if folder.is_relative_to(root) and folder.is_dir():
                yield folder


def own_group(controller: str) -> str:
    """Return the path of this process's group under that of a controller; "" names the one tree of cgroups 2."""
    for line in text_of(OWN_GROUPS).splitlines():
        _, names, path = (line.split(":", 2) + ["", ""])[:3]
        if controller in names.split(","):
            return path.strip("/")
    return ""


def text_of(path: pathlib.Path) -> str:
    """Return what a file holds, without the line's end; "" if it cannot be read."""
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
