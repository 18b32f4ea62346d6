"""How several workers meet: they wait for each other, name who is missing or gone, and only the chief logs progress."""

import logging
import re
import socket

import pytest
import tensorflow as tf

from keras_transformer.ground.errors import ConfigError
from tests.support.processes import fork_python, free_ports
from train.workers import rendezvous
from train.workers.rendezvous import WorkerLost, listening, log_as, lost_sentence, report_lost_workers, wait_for_others
from train.workers.tf_config import ALONE, Cluster, Worker


def on_loopback():
    """Both workers' view of a cluster of two whose ports are free."""
    addresses = tuple(f"127.0.0.1:{port}" for port in free_ports(2))
    return Cluster(addresses, Worker(0, 2)), Cluster(addresses, Worker(1, 2))


def test_a_worker_that_does_not_start_is_named_after_the_time_limit(caplog):
    one, _ = on_loopback()
    name = f"worker 1 ({one.addresses[1]})"
    with pytest.raises(WorkerLost) as error:
        wait_for_others(one, seconds=0.3, patience=0)
    assert str(error.value).startswith(f"{name} did not answer within 0.3 s.")
    assert [record.getMessage() for record in caplog.records] == [f"waiting up to 0.3 s for {name}"]


def test_several_workers_are_named_in_their_order():
    assert rendezvous.listed({"worker 2 (b:1)", "worker 1 (c:1)", "worker 3 (a:1)"}) == (
        "worker 1 (c:1) and worker 2 (b:1) and worker 3 (a:1)"
    )


def test_once_the_other_worker_answers_nobody_waits(caplog):
    one, other = on_loopback()
    with listening(other):
        wait_for_others(one, seconds=60, patience=0)
    assert not caplog.records


def test_a_port_that_is_taken_is_refused_with_its_number():
    one, _ = on_loopback()
    port = int(one.addresses[0].rpartition(":")[2])
    with socket.create_server(("", port)), pytest.raises(ConfigError, match=f"the port {port}, which cannot be opened"):
        wait_for_others(one, seconds=0)


def test_the_workers_that_do_not_answer_are_named_as_lost():
    one, other = on_loopback()
    message = "Graph execution error\nCollective ops is aborted by: Socket closed\n"
    assert lost_sentence(one, message).startswith(f"worker 1 ({one.addresses[1]}) is gone, ")
    with listening(other):
        assert "(Collective ops is aborted by: Socket closed)" in lost_sentence(one, message)
        assert "(Deadline exceeded)" in lost_sentence(one, "Deadline exceeded")


def test_only_the_chief_logs_progress_and_others_log_warnings_with_their_number(capsys):
    root, log = logging.getLogger(), logging.getLogger("train")
    handlers, level = root.handlers, log.level
    try:
        for worker, expected in ((Worker(0, 2), 2), (Worker(1, 2), 1)):
            root.handlers = [logging.StreamHandler()]
            log.setLevel(logging.INFO)
            log_as(worker)
            log.info("a step")
            log.warning("a damaged file")
            lines = capsys.readouterr().err.splitlines()
            assert len(lines) == expected
            form = r"a damaged file" if worker.is_chief else r"worker 1: \d\d:\d\d:\d\d a damaged file"
            assert re.fullmatch(form, lines[-1])
    finally:
        root.handlers = handlers
        log.setLevel(level)


@pytest.mark.parametrize("kind", ["UnavailableError", "AbortedError", "CancelledError", "DeadlineExceededError"])
def test_a_collective_that_fails_raises_worker_lost_in_a_cluster_and_itself_alone(kind):
    one, _ = on_loopback()
    error = getattr(tf.errors, kind)(None, None, "Socket closed")
    with pytest.raises(WorkerLost, match="worker 1 .* is gone"), report_lost_workers(one):
        raise error
    with pytest.raises(type(error)), report_lost_workers(ALONE):
        raise error


def test_a_mistake_in_a_cluster_stays_what_it_is():
    one, _ = on_loopback()
    with pytest.raises(ConfigError), report_lost_workers(one):
        raise ConfigError("a mistake")


EXITING = """
import atexit, sys
from train.workers import rendezvous
rendezvous.has_joined, rendezvous.FAREWELL_SECONDS = {joined}, 0
atexit.register(print, "ended slowly")
with rendezvous.exit_immediately():
    print("worked")
    {ending}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("joined", "ending", "code", "output"),
    [
        (True, "sys.exit(75)", 75, "worked\n"),
        (True, "pass", 0, "worked\n"),
        (True, "1 // 0", 1, "worked\n"),
        (False, "sys.exit(75)", 75, "worked\nended slowly\n"),
        (False, "pass", 0, "worked\nended slowly\n"),
    ],
)
def test_a_process_that_joined_a_cluster_exits_at_once_with_its_code(joined, ending, code, output):
    program = EXITING.format(joined=joined, ending=ending)
    process = fork_python("-c", program)
    assert (process.returncode, process.stdout) == (code, output)
    assert ("ZeroDivisionError" in process.stderr) == ("//" in ending)
