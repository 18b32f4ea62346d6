"""Several processes that train as one: who they are, how they find each other, and how one that is gone is missed.

`TF_CONFIG` says who they are. Worker 0 is the chief: it alone has a run folder, and the others get from it what they
need through the same collectives that sum the gradients, so that no file system has to be shared.
"""

import contextlib
import logging
import os
import signal
import socket
import sys
import time
import traceback

from keras_transformer.config import ConfigError
from keras_transformer.errors import Interrupted
from train.workers.tf_config import split_address

log = logging.getLogger("train")

JOIN_SECONDS = 600  # how long a worker waits at its start for all others to be there
FAREWELL_SECONDS = 1  # for what was said to the others to reach them
joined = []  # the Cluster that this process has begun to join: TensorFlow has one to a process, until its end


class WorkerLost(Interrupted):
    """Another worker of the cluster is gone, or never came; the message says which, and how to go on."""


def log_as(worker):
    """Only the chief tells the story; what another worker warns of has its number in front."""
    if worker.is_chief:
        return
    log.setLevel(logging.WARNING)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(logging.Formatter(f"worker {worker.index}: %(asctime)s %(message)s", "%H:%M:%S"))


def join(cluster, seconds=JOIN_SECONDS):
    """Wait until every worker is there. Returns the strategy that makes one of them.

    To be called before TensorFlow does anything else. Raises WorkerLost for who is not there after `seconds`, and
    ConfigError if this worker's own port is taken.
    """
    import tensorflow as tf

    wait_for_others(cluster, seconds)
    joined.append(cluster)
    signal.alarm(seconds)  # TensorFlow's own waiting has no such limit, and no Python runs meanwhile
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except tf.errors.OpError as error:
        raise WorkerLost(lost_sentence(cluster, error)) from None
    finally:
        signal.alarm(0)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)  # TensorFlow takes SIGTERM; and Python cannot answer in a collective


def wait_for_others(cluster, seconds, patience=5, pause=0.2):
    """Until every other worker's port answers: in Python, so that it can be said, limited and interrupted.

    Who is missing after `patience` seconds is said, by every worker, and again when it is somebody else.
    """
    missing, announced, began = set(cluster.others), set(), time.monotonic()
    with listening(cluster):
        while missing := {name for name in missing if not answers(*cluster.others[name])}:
            waited = time.monotonic() - began
            if waited > seconds:
                raise WorkerLost(
                    f"{listed(missing)} did not answer within {seconds} s. Start every worker with the same list of "
                    "addresses in TF_CONFIG, and see that each can reach the ports of the others."
                )
            if missing != announced and waited > patience:
                log.warning("waiting up to %g s for %s", seconds, listed(missing))
                announced = missing
            time.sleep(pause)


@contextlib.contextmanager
def listening(cluster):
    """Within, this worker's own port answers, as it will when TensorFlow has taken it over."""
    _, port = split_address(cluster.addresses[cluster.worker.index])
    try:
        both = {"family": socket.AF_INET6, "dualstack_ipv6": True} if socket.has_dualstack_ipv6() else {}
        server = socket.create_server(("", port), backlog=128, **both)
    except OSError as error:
        raise ConfigError(
            f"TF_CONFIG gives this worker the port {port}, which cannot be opened: {error.strerror}. "
            "Another process may hold it, for example this worker started twice."
        ) from None
    with server:
        yield


def answers(host, port):
    try:
        with socket.create_connection((host, port), timeout=2):
            return True
    except OSError:  # nobody there, no such host yet, or no way to it
        return False


@contextlib.contextmanager
def missing_workers_are_named(cluster):
    """Within, a collective that fails because a worker is gone raises WorkerLost, which says which one."""
    if cluster.worker.count == 1:
        yield
        return
    import tensorflow as tf

    gone = (
        tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError,
        tf.errors.DeadlineExceededError, tf.errors.FailedPreconditionError,
    )  # fmt: skip
    try:
        yield
    except gone as error:
        raise WorkerLost(lost_sentence(cluster, error)) from None


def lost_sentence(cluster, error):
    silent = [name for name, address in cluster.others.items() if not answers(*address)]
    lines = [line for line in str(error.message).splitlines() if "aborted by" in line] or [str(error.message)]
    found = f"{listed(silent)} is gone" if silent else f"A worker is gone, silent, or started anew ({lines[0].strip()})"
    return (
        f"{found}, and no step can be done without it. Start every worker again with the same command: they go on from "
        "the last checkpoint."
    )


@contextlib.contextmanager
def leaving_at_once():
    """Around a whole command: a process of a cluster ends when its work ends, with the exit code that is raised within.

    Left to itself, TensorFlow takes up to half a minute to end its threads, and the others may wait for this worker.
    """
    code = 0
    try:
        yield
    except BaseException as ending:
        if not joined:
            raise
        code = 1
        if isinstance(ending, SystemExit) and isinstance(ending.code, int):
            code = ending.code
        else:
            traceback.print_exc()
    if joined:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        time.sleep(FAREWELL_SECONDS)
        os._exit(code)


def listed(names):
    return " and ".join(sorted(names))
