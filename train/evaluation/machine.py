"""What a measurement was made on: the processor and the versions of packages, for reports and benchmarks."""

import importlib.metadata
import os
import pathlib
import platform
from collections.abc import Iterable

CPUINFO = pathlib.Path("/proc/cpuinfo")


def processor() -> str:
    """The processor's name as Linux gives it, else what Python knows of it."""
    lines = CPUINFO.read_text(encoding="utf-8").splitlines() if CPUINFO.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def processor_and_cores() -> str:
    """For example "AMD EPYC, 2 cores": all cores of the machine."""
    return f"{processor()}, {os.cpu_count()} cores"


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Name -> version of Python and of those packages that are installed."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
