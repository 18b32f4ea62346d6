"""A translating contestant in a process of its own, which answers one request at a time and sleeps in between."""

import importlib.util
import multiprocessing
import os
import pathlib
import resource
import signal
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.translate_work import Work
from benchmarks.translators import CONTESTANTS, Setting
from benchmarks.worker import GRACE, BenchmarkError
from keras_transformer.errors import UserError

SIZE, PRODUCTS = 2048, 8  # of the matrix product that measures the machine


class Missing(BenchmarkError):
    """A contestant that cannot take part; the message gives the reason."""


def available(names: list[str], missing: dict[str, str]) -> list[str]:
    """The contestants whose packages are installed; the reasons for the others go into `missing`."""
    for name in names:
        package = CONTESTANTS[name].package
        if package and importlib.util.find_spec(package) is None:
            missing[name] = f"needs {package}, which is not installed: run `make peers`."
    return [name for name in names if name not in missing]


class TranslateWorker:
    """The parent's end of the connection."""

    def __init__(self, name: str, work: Work):
        self.name = name
        context = multiprocessing.get_context("spawn")  # a fork would share the threads of imported libraries
        self.connection, its_end = context.Pipe()
        self.process = context.Process(target=serve, args=(its_end, name, work.folder), daemon=True)
        self.process.start()
        its_end.close()

    def wait_until_loaded(self) -> None:
        """Raises Missing if the contestant cannot take part."""
        if reason := self._answer():
            raise Missing(reason)

    def settings(self, cores: int, size: int | None) -> list[Setting]:
        """What the contestant may choose from, if it gets `size` lines at a time."""
        return self._ask("settings", cores, size)

    def translate(
        self, lines: list[str], beam_size: int, forced: int | None, setting: Setting, size: int | None
    ) -> tuple[list[str], list[float]]:
        """The translations, and the seconds of each call: one call with all lines, or one per `size` lines."""
        return self._ask("translate", lines, beam_size, forced, setting, size)

    def peak_bytes(self) -> int:
        """The largest memory that the process has used so far."""
        return self._ask("peak_bytes")

    def products(self) -> dict[str, float]:
        """FLOPs per second of a matrix product on this machine, by precision."""
        return self._ask("products")

    def end(self) -> None:
        self.connection.close()
        self.process.join(GRACE)
        self.process.kill()
        self.process.join()

    def _ask(self, *request) -> Any:
        try:
            self.connection.send(request)
        except OSError:
            pass  # `_answer` reports it
        return self._answer()

    def _answer(self) -> Any:
        try:
            return self.connection.recv()
        except (EOFError, OSError):  # the process has ended
            self.process.join()
            raise BenchmarkError(
                f"{self.name} ended with exit code {self.process.exitcode} (-9: killed, for example because memory ran "
                "out). Its own messages are above; --contestants leaves it out."
            ) from None


class Crew:
    """The workers that take part in one piece of work. On leaving the context, every process ends."""

    def __init__(self, names: list[str], work: Work, missing: dict[str, str]):
        self.names, self.work, self.missing, self.workers = names, work, missing, []

    def __enter__(self) -> list[TranslateWorker]:
        try:
            for name in self.names:  # one after the other: they load big models
                worker = TranslateWorker(name, self.work)
                self.workers.append(worker)
                try:
                    worker.wait_until_loaded()
                except Missing as error:
                    self.missing[name] = str(error)
                    self.workers.remove(worker)
                    worker.end()
        except BaseException:
            self.__exit__()
            raise
        return self.workers

    def __exit__(self, *_) -> None:
        for worker in self.workers:
            worker.end()


def serve(connection: Connection, name: str, folder: pathlib.Path) -> None:
    """The contestant's process: load, then answer requests until the parent closes the connection."""
    from keras_transformer.console import prepare_process, quiet_start

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which then ends this process
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # this benchmark compares CPUs
    prepare_process()
    try:
        with quiet_start():
            answers = Answers(name, folder)
    except UserError as error:
        connection.send(str(error))
        return
    connection.send(None)
    while True:
        try:
            request, *arguments = connection.recv()
        except EOFError:
            return
        connection.send(getattr(answers, request)(*arguments))


class Answers:
    """What a contestant's process does on request; see TranslateWorker."""

    def __init__(self, name: str, folder: pathlib.Path):
        from benchmarks.translators import load, module_of

        self.module, self.contestant = module_of(name), load(name, folder)

    def settings(self, cores: int, size: int | None) -> list[Setting]:
        """If lines come in groups of `size`, no batch is larger, and settings that differ by that are one."""
        found = self.module.settings(cores)
        if size is None:
            return found
        capped = [setting | {"batch_size": min(setting["batch_size"], size)} for setting in found]
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
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

    def products(self) -> dict[str, float]:
        import tensorflow as tf

        found = {}
        for precision in ("float32", "bfloat16"):
            state, factor = (tf.cast(tf.random.normal((SIZE, SIZE), stddev=SIZE**-0.5), precision) for _ in range(2))
            rates = []
            for _ in range(4):
                started = time.perf_counter()
                for _ in range(PRODUCTS):
                    result = tf.matmul(state, factor)
                float(result[0, 0])
                rates.append(PRODUCTS * 2 * SIZE**3 / (time.perf_counter() - started))
            found[precision] = max(rates)
        return found
