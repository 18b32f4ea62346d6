"""Cores, memory, disk and GPUs as this process sees them, in a container or not."""

import os
import pathlib
import re
import shutil
import site
import subprocess
from collections.abc import Iterator

from keras_transformer.doctor.finding import Finding, missing, note, ok
from keras_transformer.doctor.packages import cuda_requirements, tensorflow_name, version_of
from keras_transformer.ground.container import core_limit, memory_limit
from keras_transformer.ground.machine import (
    free_memory,
    gigabytes,
    has_bfloat16_products,
    memory_that_is,
    processor_and_cores,
    processor_cores,
)

DEVICES = pathlib.Path("/dev")
DRIVER = pathlib.Path("/proc/driver/nvidia")
LITTLE_MEMORY = 2 * 2**30  # bytes: what TensorFlow and the demo take
LITTLE_DISK = 2 * 2**30
LIBRARIES = {  # what TensorFlow loads of each package of NVIDIA; the number after .so is that of the package
    "cublas": ("libcublas.so", "libcublasLt.so"),
    "cuda-cupti": ("libcupti.so",),
    "cuda-runtime": ("libcudart.so",),
    "cudnn": ("libcudnn.so",),
    "cufft": ("libcufft.so",),
    "cusolver": ("libcusolver.so",),
    "cusparse": ("libcusparse.so",),
    "nccl": ("libnccl.so",),
    "nvjitlink": ("libnvJitLink.so",),
}


def machine(place: pathlib.Path) -> Iterator[Finding]:
    """Yield findings on the processor, memory, GPUs, and the disk of the folder `place`."""
    limit = core_limit()
    container = f", limited to {limit} by the container" if limit and limit <= processor_cores() else ""
    yield ok(f"{processor_and_cores()}{container}")
    if has_bfloat16_products():
        yield ok("bfloat16 products: yes", "training takes them, and --precision bfloat16 of translations")
    else:
        yield ok("bfloat16 products: no", "leave --precision at float32")
    yield memory()
    yield disk(place)
    yield from gpus()


def memory() -> Finding:
    """Return the finding on memory: what there is, what is free, and what a container may take."""
    total, limit, free = memory_that_is("MemTotal"), memory_limit(), free_memory()
    if total is None or free is None:
        return note("memory: this system does not say", "training then makes no estimate of what fits")
    container = f", limited to {gigabytes(limit)} by the container" if limit and limit < total else ""
    text = f"memory: {gigabytes(total)}{container}, {gigabytes(free)} free"
    if free < LITTLE_MEMORY:
        return note(text, "end other processes, or take smaller batches: training.tokens_per_batch, --batch-size")
    return ok(text)


def disk(place: pathlib.Path) -> Finding:
    """Return the finding on the disk of a folder, or of the next folder above it that exists."""
    place = next(path for path in (place, *place.absolute().parents) if path.exists())
    free = shutil.disk_usage(place).free
    text = f"disk of {place}: {gigabytes(free)} free"
    if not os.access(place if place.is_dir() else place.parent, os.W_OK):
        return note(f"{text}, not writable", "name folders elsewhere when you train or export")
    if free < LITTLE_DISK:
        return note(text, "remove old checkpoints or exports: a full disk ends a training")
    return ok(text)


def gpus() -> Iterator[Finding]:
    """Yield findings on NVIDIA's GPUs: which there are, and which libraries TensorFlow lacks to use them."""
    names = gpu_names()
    if not names:
        yield ok("no NVIDIA GPU: everything runs on the processor")
        return
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        yield note(f"{', '.join(names)}: hidden", "unset CUDA_VISIBLE_DEVICES to use it")
        return
    lacking = [name for name in cuda_libraries() if not is_found(name)]
    if lacking:
        version = version_of(tensorflow_name())
        pin = f"=={version}" if version else ""
        yield missing(
            f"{', '.join(names)}, which TensorFlow cannot use: it finds no {', '.join(lacking)}",
            f"pip install 'tensorflow[and-cuda]{pin}', or CUDA_VISIBLE_DEVICES= to do without",
        )
    else:
        yield ok(f"{', '.join(names)}, with all libraries of CUDA")


def gpu_names() -> list[str]:
    """Return the names of NVIDIA's GPUs; of one that says no name that of its device."""
    texts = [path.read_text("utf-8", "replace") for path in sorted(DRIVER.glob("gpus/*/information"))]
    names = [model[1].strip() for text in texts if (model := re.search(r"^Model:(.*)$", text, re.MULTILINE))]
    return names or [path.name for path in sorted(DEVICES.glob("nvidia[0-9]*"))]


def cuda_libraries() -> Iterator[str]:
    """Yield the names of the libraries that the installed TensorFlow loads, such as libcudnn.so.9."""
    for requirement in cuda_requirements():
        package = re.sub(r"^nvidia-|-cu\d+$", "", requirement.name)
        lowest = re.search(r">=\s*(\d+)", str(requirement.specifier))
        for library in LIBRARIES.get(package, ()):
            yield f"{library}.{lowest[1]}" if lowest else library


def is_found(library: str) -> bool:
    """Return whether the loader would find a library: of NVIDIA's packages, in LD_LIBRARY_PATH, or the system's."""
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    folders += ["/usr/local/cuda/lib64"]
    if any(folder and (pathlib.Path(folder) / library).exists() for folder in folders):
        return True
    packages = [*site.getsitepackages(), site.getusersitepackages()]
    if any(any(pathlib.Path(place).glob(f"nvidia/*/lib/{library}")) for place in packages):
        return True
    return library in system_libraries()


def system_libraries() -> str:
    """Return what `ldconfig -p` lists; nothing where there is no such program."""
    try:
        return subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, timeout=10).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
