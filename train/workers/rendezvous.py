"""Several processes that train as one: how they meet, how a lost one is noticed, and how they end.

`TF_CONFIG` lists them (tf_config.py). Worker 0 is the chief and alone has a run folder. The others receive what they
need from it through the collectives that also sum the gradients, so no shared file system is needed.
"""

import contextlib
import logging
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterable, Iterator

from keras_transformer.commands.signals import signals_to_handle
from keras_transformer.ground.errors import ConfigError, Interrupted

from .tf_config import Cluster, Worker, split_address

log = logging.getLogger("train")

JOIN_SECONDS = 600  # how long a starting worker waits for all others
FAREWELL_SECONDS = 1  # for the last messages to reach the other workers
has_joined = False  # True once this process starts to join a cluster, which TensorFlow allows once and never leaves


class WorkerLost(Interrupted):
    """Another worker of the cluster is gone or never started; the message says which, and how to continue."""


def log_as(worker: Worker) -> None:
    """Let only the chief log its progress. Other workers log warnings, with their number in front."""
    if worker.is_chief:
        return
    log.setLevel(logging.WARNING)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(logging.Formatter(f"worker {worker.index}: %(asctime)s %(message)s", "%H:%M:%S"))


def join(cluster: Cluster, seconds: int = JOIN_SECONDS):
    """Wait until every worker has started. Returns the MultiWorkerMirroredStrategy over all of them.

    Call it before anything else uses TensorFlow. Raises WorkerLost with the workers that are missing after `seconds`,
    and ConfigError if this worker's own port is taken.
    """
    import tensorflow as tf

    global has_joined
    wait_for_others(cluster, seconds)
    numbers = signals_to_handle()
    has_joined = True
    signal.alarm(seconds)  # TensorFlow itself waits without a limit, and no Python runs meanwhile
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except tf.errors.OpError as error:
        raise WorkerLost(lost_sentence(cluster, error.message)) from None
    finally:
        signal.alarm(0)
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)  # TensorFlow takes SIGTERM; Python handles none inside a collective


def wait_for_others(cluster: Cluster, seconds: float, patience: float = 5) -> None:
    """Wait until the port of every other worker answers. Done in Python, so that it has a limit and can be interrupted.

    After `patience` seconds every worker logs which workers are missing, and logs again when that changes. Raises
    WorkerLost after `seconds`.
    """
    missing, announced, began = set(cluster.others), set(), time.monotonic()
    with listening(cluster):
        while missing := {name for name in missing if not answers(*cluster.others[name])}:
            waited = time.monotonic() - began
            if waited > seconds:
                raise WorkerLost(
                    f"{listed(missing)} did not answer within {seconds} s. Start every worker with the same list of "
                    "addresses in TF_CONFIG, and check that each worker can reach the ports of the others."
                )
            if missing != announced and waited > patience:
                log.warning("waiting up to %g s for %s", seconds, listed(missing))
                announced = missing
            time.sleep(0.2)


@contextlib.contextmanager
def listening(cluster: Cluster) -> Iterator[None]:
    """Within, this worker's own port answers, as it does later, when TensorFlow has taken it over."""
    _, port = split_address(cluster.addresses[cluster.worker.index])
    try:
        both = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both else socket.AF_INET
        server = socket.create_server(("", port), family=family, backlog=128, dualstack_ipv6=both)
    except OSError as error:
        raise ConfigError(
            f"TF_CONFIG gives this worker the port {port}, which cannot be opened: {error.strerror}. "
            "Another process may hold it, for example this worker started twice."
        ) from None
    with server:
        yield


def answers(host: str, port: int) -> bool:
    """True if a connection to the port can be opened."""
    try:
        with socket.create_connection((host, port), timeout=2):
            return True
    except OSError:  # nothing listens there, the name is unknown yet, or the network is down
        return False


@contextlib.contextmanager
def report_lost_workers(cluster: Cluster) -> Iterator[None]:
    """Within, a collective that fails because a worker is gone raises WorkerLost, which names the worker."""
    if cluster.worker.count == 1:
        yield
        return
    import tensorflow as tf

    lost = (
        tf.errors.UnavailableError,
        tf.errors.AbortedError,
        tf.errors.CancelledError,
        tf.errors.DeadlineExceededError,
        tf.errors.FailedPreconditionError,
    )
    try:
        yield
    except lost as error:
        raise WorkerLost(lost_sentence(cluster, error.message)) from None


def lost_sentence(cluster: Cluster, message: str) -> str:
    """Names the workers whose ports do not answer, and tells how to continue. message: of a TensorFlow OpError."""
    silent = [name for name, address in cluster.others.items() if not answers(*address)]
    if silent:
        cause = f"{listed(silent)} is gone"
    else:
        lines = [line for line in message.splitlines() if "aborted by" in line] or [message]
        cause = f"A worker is gone, silent, or was started again ({lines[0].strip()})"
    return (
        f"{cause}, and no step can be done without it. Start every worker again with the same command: training "
        "continues from the last checkpoint."
    )


@contextlib.contextmanager
def exit_immediately() -> Iterator[None]:
    """Around a whole command: end a process that joined a cluster as soon as its work ends.

    The exit code is the one that is raised within. Left to itself, TensorFlow takes up to half a minute to end its
    threads, and the other workers may wait for this one.
    """
    code = 0
    try:
        yield
    except BaseException as ending:
        if not has_joined:
            raise
        if isinstance(ending, SystemExit) and isinstance(ending.code, int):
            code = ending.code
        else:
            code = 1
            traceback.print_exc()
    if has_joined:
        sys.stdout.flush()
        sys.stderr.flush()
        time.sleep(FAREWELL_SECONDS)
        os._exit(code)


def listed(names: Iterable[str]) -> str:
    return " and ".join(sorted(names))
