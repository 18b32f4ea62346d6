"""The contestant's process: each framework has one of its own, since each wants the whole GPU."""

import os
import sys
from multiprocessing.connection import Connection

from benchmarks.speed.on_accelerator.task import CONTESTANTS, Task
from benchmarks.worker import Failure

WARM_UP = 3  # steps, in which everything is compiled


def serve_chip(connection: Connection, name: str) -> None:
    """Send one Chip."""
    answer(connection, send_chip)


def serve(connection: Connection, name: str, task: Task) -> None:
    """Send a Round when everything is compiled, then one per number of steps that arrives."""
    answer(connection, send_rounds, name, task)


def answer(connection: Connection, conversation, *arguments) -> None:
    """Hold a conversation; whatever ends it is the last answer. What libraries print goes to stderr."""
    os.dup2(2, 1)
    try:
        conversation(connection, *arguments)
    except Exception as error:  # any failure of a framework becomes a row of the table; the benchmark goes on
        message = (str(error).strip() or "without a message").splitlines()[0]
        connection.send(Failure(f"{type(error).__name__}: {message}"))
        sys.exit(1)


def send_chip(connection: Connection) -> None:
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    from benchmarks.speed.on_accelerator.chip import measure_chip

    connection.send(measure_chip())


def send_rounds(connection: Connection, name: str, task: Task) -> None:
    contestant = CONTESTANTS[name]
    if contestant.framework == "torch":  # imported here, since each needs another framework
        from benchmarks.speed.on_accelerator.torch_compiled import TorchCompiled as Training
    else:
        from benchmarks.speed.on_accelerator.keras_fit import KerasFit as Training

    training = Training(task, contestant)
    connection.send(training.round(WARM_UP))
    while True:
        try:
            (steps,) = connection.recv()
        except EOFError:  # the parent has closed the connection
            return
        connection.send(training.round(steps))
