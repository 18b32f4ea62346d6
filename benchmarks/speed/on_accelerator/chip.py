"""The device that JAX finds: its name, its speed in matrix products and copies, and what its maker promises."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from keras_transformer.ground.machine import package_versions, processor_and_cores

PACKAGES = ("jax", "jaxlib", "keras", "torch", "ctranslate2", "numpy")
SIZES = {"cpu": 512}  # width of the matrices, by platform
LARGE = 8192
PRODUCTS = {"bfloat16": ("bfloat16", "default"), "TF32": ("float32", "default"), "float32": ("float32", "highest")}
COPIED = {"cpu": 1 << 28}  # bytes of an array, by platform: more than any cache
MUCH = 1 << 32
NOMINAL = {  # FLOPs per second of dense matrices, from the data sheets, by a part of the device's name
    "H100": {"bfloat16": 989e12, "TF32": 494.7e12, "float32": 67e12},  # SXM
    "H200": {"bfloat16": 989e12, "TF32": 494.7e12, "float32": 67e12},
}
NOMINAL_BANDWIDTH = {"H100": 3.35e12, "H200": 4.8e12}  # bytes per second of the memory, from the data sheets; SXM


class Chip(NamedTuple):
    """A device. Its speeds are FLOPs per second by the names of PRODUCTS, and bytes per second of its memory."""

    platform: str  # "gpu", "tpu" or "cpu"
    name: str
    versions: dict[str, str]
    matrix_size: int
    measured: dict[str, float]  # of products of square matrices of that size
    nominal: dict[str, float]  # what the maker promises; empty if this module does not know the device
    bandwidth: float  # read and written by a copy
    nominal_bandwidth: float | None


def measure_chip() -> Chip:
    """Describe and time the first device of this process."""
    import jax

    device = jax.devices()[0]
    size = SIZES.get(device.platform, LARGE)
    name = processor_and_cores() if device.platform == "cpu" else device.device_kind
    measured = {products: matrix_flops(size, *how) for products, how in PRODUCTS.items()}
    nominal = next((speeds for part, speeds in NOMINAL.items() if part in name), {})
    bandwidths = (
        copy_bandwidth(COPIED.get(device.platform, MUCH)),
        next((bandwidth for part, bandwidth in NOMINAL_BANDWIDTH.items() if part in name), None),
    )
    return Chip(device.platform, name, package_versions(PACKAGES), size, measured, nominal, *bandwidths)


def matrix_flops(size: int, dtype: str, precision: str, products: int = 10, repeats: int = 5) -> float:
    """FLOPs per second of a (size, size) product through JAX: the best of several series of products.

    On a GPU, float32 with the precision "default" is TF32. The matrices hold random numbers, since a chip that is
    limited by its power multiplies zeros faster.
    """
    import jax
    import jax.numpy as jnp

    left, right = jax.random.normal(jax.random.key(0), (2, size, size), dtype)
    product = jax.jit(lambda left, right: jnp.matmul(left, right, precision=precision))
    return 2 * size**3 / best_seconds(lambda: product(left, right), products, repeats)


def copy_bandwidth(size: int) -> float:
    """Bytes per second that a copy of `size` bytes reads and writes: the best of several series of copies."""
    import jax
    import jax.numpy as jnp

    array = jnp.zeros(size // 4, "float32")
    copy = jax.jit(lambda array: array + 1.0)
    return 2 * size / best_seconds(lambda: copy(array), times=10, repeats=5)


def best_seconds(work: Callable[[], Any], times: int, repeats: int) -> float:
    """The least seconds per call of `work`, which returns an array of JAX, over `repeats` series of `times` calls."""
    work().block_until_ready()
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        for _ in range(times):
            result = work()
        result.block_until_ready()
        best = min(best, (time.perf_counter() - started) / times)
    return best
