"""A translating contestant in a process of its own, which answers one request at a time and sleeps in between."""

import contextlib
import importlib.util
import pathlib
import resource
import time
from collections.abc import Iterator

from benchmarks.errors import BenchmarkError
from benchmarks.speed.processes import ContestantProcess, peak_bytes, prepare_for_cpu
from benchmarks.speed.translate_work import Work
from benchmarks.speed.translators import ALL, BFLOAT16, MARIAN, Setting
from keras_transformer.ground.machine import has_bfloat16_products

SIZE, PRODUCTS = 2048, 8  # of the matrix product that measures the machine


def available(names: list[str], missing: dict[str, str]) -> list[str]:
    """The contestants that this machine has what it takes for; the reasons for the others go into `missing`."""
    for name in names:
        if name in BFLOAT16 and not has_bfloat16_products():
            missing[name] = "this processor has no instructions for bfloat16 products."
        package = ALL[name].package
        if package and importlib.util.find_spec(package) is None:
            how = f"pip install {package}" if name in MARIAN else "make peers"
            missing[name] = f"needs {package}, which is not installed: run `{how}`."
    return [name for name in names if name not in missing]


class TranslateWorker(ContestantProcess):
    """A contestant that translates."""

    def __init__(self, name: str, work: Work):
        super().__init__(Translating, name, work.folder)

    def settings(self, cores: int, size: int | None) -> list[Setting]:
        """What the contestant may choose from, if it gets `size` lines at a time."""
        return self.ask("settings", cores, size)

    def translate(
        self, lines: list[str], beam_size: int, forced: int | None, setting: Setting, size: int | None
    ) -> tuple[list[str], list[float]]:
        """The translations, and the seconds of each call: one call with all lines, or one per `size` lines."""
        return self.ask("translate", lines, beam_size, forced, setting, size)

    def peak_bytes(self) -> int:
        """The largest memory that the process has used so far."""
        return self.ask("peak_bytes")


@contextlib.contextmanager
def crew(names: list[str], work: Work, missing: dict[str, str]) -> Iterator[list[TranslateWorker]]:
    """The workers that take part in one piece of work; why others do not goes into `missing`.

    On leaving the context, every process ends.
    """
    with contextlib.ExitStack() as stack:
        workers = []
        for name in names:  # one after the other: they load big models
            worker = stack.enter_context(TranslateWorker(name, work))
            try:
                worker.wait_until_ready()
                workers.append(worker)
            except BenchmarkError as error:
                missing[name] = str(error)
        yield workers


class Translating:
    """The contestant in its process; see TranslateWorker."""

    def __init__(self, name: str, folder: pathlib.Path):
        from keras_transformer.ground.imports import quiet_imports

        prepare_for_cpu()
        with quiet_imports():
            from benchmarks.speed.translators import load, module_of

            self.module, self.contestant = module_of(name), load(name, folder)

    def settings(self, cores: int, size: int | None) -> list[Setting]:
        """If lines come in groups of `size`, no batch is larger, and settings that differ by that are one."""
        settings = self.module.settings(cores)
        if size is None:
            return settings
        capped = [setting | {"batch_size": min(setting["batch_size"], size)} for setting in settings]
        return [setting for number, setting in enumerate(capped) if setting not in capped[:number]]

    def translate(
        self, lines: list[str], beam_size: int, forced: int | None, setting: Setting, size: int | None
    ) -> tuple[list[str], list[float]]:
        texts, seconds, size = [], [], size or len(lines)
        for first in range(0, len(lines), size):
            started = time.perf_counter()
            texts += self.contestant.translate(lines[first : first + size], beam_size, forced, setting)
            seconds.append(time.perf_counter() - started)
        return texts, seconds

    def peak_bytes(self) -> int:
        return peak_bytes(resource.getrusage(resource.RUSAGE_SELF))


def machine_products() -> dict[str, float]:
    """FLOPs per second of a matrix product on this machine, by precision.

    In a process of its own, which has all threads: a contestant may have given its operations fewer.
    """
    with ContestantProcess(Products, "the matrix product") as process:
        process.wait_until_ready()
        return process.ask("flops_per_second")


class Products:
    """What multiplies matrices in its process."""

    def __init__(self, name: str):
        prepare_for_cpu()

    def flops_per_second(self) -> dict[str, float]:
        """The best of several series of products, by precision."""
        from keras_transformer.ground.imports import quiet_imports

        with quiet_imports():
            import tensorflow as tf

        best = {}
        for precision in ("float32", "bfloat16"):
            state, factor = (tf.cast(tf.random.normal((SIZE, SIZE), stddev=SIZE**-0.5), precision) for _ in range(2))
            rates = []
            for _ in range(4):
                started = time.perf_counter()
                for _ in range(PRODUCTS):
                    result = tf.matmul(state, factor)
                float(result[0, 0])
                rates.append(PRODUCTS * 2 * SIZE**3 / (time.perf_counter() - started))
            best[precision] = max(rates)
        return best
