"""What the machine is and offers: the processor and the versions of packages, for reports and benchmarks too."""

import importlib.metadata
import os
import pathlib
import platform
import re
from collections.abc import Iterable

from keras_transformer.ground.container import core_limit, memory_left

CPUINFO = pathlib.Path("/proc/cpuinfo")
MEMORY = pathlib.Path("/proc/meminfo")


def processor() -> str:
    """The processor's name as Linux gives it, else what Python knows of it."""
    names = [line.partition(":")[2].strip() for line in cpuinfo().splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def processor_and_cores() -> str:
    """For example "AMD EPYC, 2 cores", or "AMD EPYC, 2 cores, 1 of them used" if this process may not use all."""
    cores, used = os.cpu_count() or 1, processor_cores()
    return f"{processor()}, {cores} core{'s' * (cores != 1)}" + (f", {used} of them used" if used < cores else "")


def package_versions(packages: Iterable[str]) -> dict[str, str]:
    """Name -> version of Python and of those packages that are installed."""
    versions_by_name = {"python": platform.python_version()}
    for package in packages:
        try:
            versions_by_name[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions_by_name


def processor_cores() -> int:
    """Return how many cores this process may use: those it may run on, up to the limit of its container."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, core_limit() or cores)


def free_memory() -> int | None:
    """Return the bytes of memory that are free, of a container's limit if that is less; None if nobody says."""
    free = [size for size in (memory_that_is("MemAvailable"), memory_left()) if size is not None]
    return min(free, default=None)


def memory_that_is(name: str) -> int | None:
    """Return the bytes that Linux gives for "MemTotal", "MemAvailable", ...; None if it does not say."""
    try:
        size = re.search(rf"^{name}:\s*(\d+) kB", MEMORY.read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        return None
    return int(size[1]) * 1024 if size else None


def has_bfloat16_products() -> bool:
    """Return whether the processor multiplies matrices in bfloat16: AVX-512 BF16 or AMX, as Linux reports it."""
    return re.search(r"\b(avx512_bf16|amx_bf16|bf16)\b", cpuinfo()) is not None


def cpuinfo() -> str:
    """Return what Linux says of the processor; nothing on other systems."""
    try:
        return CPUINFO.read_text(encoding="utf-8")
    except OSError:
        return ""


def gigabytes(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
