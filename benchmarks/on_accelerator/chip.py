"""The device that JAX finds: its name, the packages, and its speed in bfloat16 matrix products."""

import dataclasses
import time

from keras_transformer.machine import processor_and_cores, versions

PACKAGES = ("jax", "jaxlib", "keras", "torch", "numpy")
SIZES = {"cpu": 1024}  # width of the matrices, by platform
LARGE = 8192


@dataclasses.dataclass(frozen=True)
class Chip:
    platform: str  # "gpu", "tpu" or "cpu"
    name: str
    versions: dict[str, str]
    matrix_size: int
    matrix_flops: float  # FLOPs per second of a bfloat16 product of square matrices of that size

    @property
    def is_accelerator(self) -> bool:
        return self.platform != "cpu"


def measure_chip() -> Chip:
    """Describe and time the first device of this process."""
    import jax

    device = jax.devices()[0]
    size = SIZES.get(device.platform, LARGE)
    name = processor_and_cores() if device.platform == "cpu" else device.device_kind
    return Chip(device.platform, name, versions(PACKAGES), size, matrix_flops(size))


def matrix_flops(size: int, products: int = 10, repeats: int = 5) -> float:
    """FLOPs per second of a (size, size) bfloat16 product through JAX: the best of several series of products.

    The matrices hold random numbers, since a chip that is limited by its power multiplies zeros faster.
    """
    import jax
    import jax.numpy as jnp

    left, right = jax.random.normal(jax.random.key(0), (2, size, size), jnp.bfloat16)
    product = jax.jit(jnp.matmul)
    product(left, right).block_until_ready()
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        results = [product(left, right) for _ in range(products)]
        results[-1].block_until_ready()
        best = min(best, (time.perf_counter() - started) / products)
    return 2 * size**3 / best
