"""What the processor offers to this process."""

import os
import pathlib
import re


def processor_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def has_bfloat16_products() -> bool:
    """Return whether the processor multiplies matrices in bfloat16: AVX-512 BF16 or AMX, as Linux reports it."""
    try:
        flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return re.search(r"\b(avx512_bf16|amx_bf16|bf16)\b", flags) is not None
