"""A contestant in a process of its own, which does something on request and sleeps in between."""

import multiprocessing
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from benchmarks.errors import BenchmarkError
from keras_transformer.ground.errors import UserError, first_line_of

GRACE = 10  # seconds in which a contestant may end by itself
READY = "ready"


class Failure(NamedTuple):
    """The last answer of a contestant that can go no further."""

    reason: str


class ContestantProcess:
    """The parent's end of the connection to a process in which `serve` runs. As a context, it ends the process.

    prepare: a function of the name and the further arguments that returns the contestant, an object whose methods are
    what the process does on request. It runs in the process, and is what takes time: processes that are created one
    after the other get ready side by side.
    """

    def __init__(self, prepare: Callable[..., Any], name: str, *arguments):
        self.name = name
        context = multiprocessing.get_context("spawn")  # a fork would share the threads of imported libraries
        self.connection, its_end = context.Pipe()
        self.process = context.Process(target=serve, args=(its_end, prepare, name, *arguments), daemon=True)
        self.process.start()
        its_end.close()

    def __enter__(self) -> "ContestantProcess":
        return self

    def __exit__(self, *_) -> None:
        self.connection.close()  # which ends the process
        self.process.join(GRACE)
        self.kill()

    def wait_until_ready(self, patience: float | None = None) -> None:
        """Wait until the contestant is prepared. Raises what `ask` raises; call it once, before `ask`."""
        self._answer(patience)

    def ask(self, method: str, *arguments, patience: float | None = None) -> Any:
        """Call a method of the contestant and wait for what it returns, at most `patience` seconds if that is a number.

        Raises BenchmarkError if the contestant fails, if the process has ended, and if there is no answer in time.
        """
        try:
            self.connection.send((method, *arguments))
        except OSError:  # the process has ended: the reason may still be there to read
            pass
        return self._answer(patience)

    def _answer(self, patience: float | None) -> Any:
        try:
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

    def kill(self) -> None:
        """End the process if it still runs."""
        self.process.kill()
        self.process.join()


def serve(connection: Connection, prepare: Callable[..., Any], name: str, *arguments) -> None:
    """The contestant's process: get ready, then answer requests until the parent closes the connection.

    What libraries print goes to stderr.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which then ends this process
    os.dup2(2, 1)
    try:
        contestant = prepare(name, *arguments)
        connection.send(READY)
        while (request := next_request(connection)) is not None:
            method, *rest = request
            connection.send(getattr(contestant, method)(*rest))
    except UserError as error:
        connection.send(Failure(str(error)))
    except Exception as error:  # of any framework: the benchmark goes on without this contestant, or ends
        traceback.print_exc()
        connection.send(Failure(f"{type(error).__name__}: {first_line_of(error)}"))


def next_request(connection: Connection) -> tuple | None:
    """Wait for a request. Returns None if the parent has closed the connection."""
    try:
        return connection.recv()
    except EOFError:
        return None


def prepare_for_cpu() -> None:
    """Prepare a contestant's process for TensorFlow or PyTorch on the CPU; call it before either is imported."""
    from keras_transformer.commands.console import prepare_process

    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    prepare_process()


def peak_bytes(usage: resource.struct_rusage) -> int:
    """The largest memory in what `getrusage` or `wait4` returned, which counts in bytes on macOS, in KiB elsewhere."""
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
