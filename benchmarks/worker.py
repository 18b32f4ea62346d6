"""A contestant in a process of its own, which does something on request and sleeps in between: here, it trains."""

import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from benchmarks.contestants.workload import Workload
from keras_transformer.errors import UserError

WARM_UP = 2  # steps in which everything is compiled
GRACE = 10  # seconds in which a contestant may end by itself


class BenchmarkError(UserError):
    """A benchmark that cannot run; the message names what is missing and what to do."""


class Description(NamedTuple):
    """What a contestant reports when it is ready."""

    work: dict[str, float]  # of one step, by lane
    parameters: int | None
    loss: float | None  # at the starting weights


class Turn(NamedTuple):
    """What a contestant reports after some steps."""

    seconds: float
    waited: float  # seconds since the end of its previous turn
    used: float  # seconds of processor time while it waited


class Failure(NamedTuple):
    """What a contestant that can go no further may report in place of an answer."""

    reason: str  # one line


def names_in(text: str, known: Iterable[str], kind: str) -> list[str]:
    """The names in a comma-separated list. Raises BenchmarkError for one that is not known."""
    names = text.split(",")
    if unknown := [name for name in names if name not in known]:
        raise BenchmarkError(f"There is no {kind} {unknown[0]!r}; there are {', '.join(known)}.")
    return names


class ContestantProcess:
    """The parent's end of the connection to a process in which `serve(connection, name, *arguments)` runs."""

    def __init__(self, serve: Callable[..., None], name: str, *arguments):
        self.name = name
        context = multiprocessing.get_context("spawn")  # a fork would share the threads of imported libraries
        self.connection, its_end = context.Pipe()
        self.process = context.Process(target=serve, args=(its_end, name, *arguments), daemon=True)
        self.process.start()
        its_end.close()

    def ask(self, *request, patience: float | None = None) -> Any:
        """Send a request, if there is one, and wait for the answer, at most `patience` seconds if that is a number.

        Raises BenchmarkError if the process has ended, if there is no answer in time and if the answer is a Failure.
        """
        try:
            if request:
                self.connection.send(request)
            if not self.connection.poll(patience):
                raise BenchmarkError(f"{self.name} did not answer within {patience:.0f} seconds.")
            answer = self.connection.recv()
        except (EOFError, OSError):  # the process has ended
            self.process.join()
            raise BenchmarkError(
                f"{self.name} ended with exit code {self.process.exitcode} (-9: killed, for example because memory ran "
                "out). Its own messages are above; --contestants leaves it out."
            ) from None
        if isinstance(answer, Failure):
            raise BenchmarkError(f"{self.name} failed: {answer.reason}")
        return answer

    def dismiss(self) -> None:
        """Close the connection, which ends the process, and wait for that."""
        self.connection.close()
        self.process.join(GRACE)

    def kill(self) -> None:
        """End the process if it still runs."""
        self.process.kill()
        self.process.join()


def peak_bytes(usage: resource.struct_rusage) -> int:
    """The largest memory in what `getrusage` or `wait4` returned, which counts in bytes on macOS, in KiB elsewhere."""
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def prepare_contestant() -> None:
    """Prepare the contestant's process."""
    from keras_transformer.commands.console import prepare_process

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which then ends this process
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # the benchmarks compare CPUs
    prepare_process()


class Worker(ContestantProcess):
    """A contestant that trains. Workers get ready side by side; after that, one runs at a time."""

    def __init__(self, contestant: str, workload: Workload):
        super().__init__(serve, contestant, workload)

    def describe(self) -> Description:
        """Wait until the contestant is ready."""
        return self.ask()

    def run(self, lane: str, steps: int) -> Turn:
        """Run that number of steps and wait for their end."""
        return self.ask(lane, steps)


def serve(connection: Connection, contestant: str, workload: Workload) -> None:
    """The contestant's process: get ready, then run what is asked until the parent closes the connection."""
    from keras_transformer.commands.console import quiet_imports

    prepare_contestant()
    with quiet_imports():
        from benchmarks.contestants import prepare

        lanes, parameters, loss = prepare(contestant, workload)
        for lane in lanes.values():
            lane.run(WARM_UP)
    connection.send(Description({name: lane.work for name, lane in lanes.items()}, parameters, loss))
    while True:
        waiting_from, used_from = time.perf_counter(), time.process_time()
        try:
            name, steps = connection.recv()
        except EOFError:
            return
        waited, used = time.perf_counter() - waiting_from, time.process_time() - used_from
        lanes[name].run(1)  # untimed: after a wait the caches hold the data of other contestants
        started = time.perf_counter()
        lanes[name].run(steps)
        connection.send(Turn(time.perf_counter() - started, waited, used))
