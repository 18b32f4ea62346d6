"""Before the first step of several workers: who they are, who is missing, and what the chief tells the others."""

import json
import logging
import socket

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.config import ConfigError
from tests.support.processes import free_ports
from tests.support.runs import write_config
from train.config import load_config
from train.resume import check_same_on_all_workers
from train.workers import broadcast
from train.workers.broadcast import Broadcast
from train.workers.rendezvous import WorkerLost, listening, log_as, lost_sentence, wait_for_others
from train.workers.tf_config import ALONE, Cluster, Worker, read_cluster

TWO = ["10.0.0.1:2222", "10.0.0.2:2222"]


def text(cluster, kind="worker", index=0):
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})


# who they are


@pytest.mark.parametrize("nothing", [None, ""])
def test_without_tf_config_a_worker_is_alone(nothing):
    assert read_cluster(nothing) == ALONE and ALONE.worker == Worker(0, 1)


@pytest.mark.parametrize("index", [0, 1, "1"])
def test_a_worker_knows_its_place(index):
    assert read_cluster(text({"worker": TWO}, index=index)) == Cluster(tuple(TWO), Worker(int(index), 2))


def test_a_chief_comes_before_the_workers():
    jobs = {"worker": TWO, "chief": ["10.0.0.9:1"]}
    assert read_cluster(text(jobs, "worker", 1)) == Cluster(("10.0.0.9:1", *TWO), Worker(2, 3))
    assert read_cluster(text(jobs, "chief")).worker.is_chief


@pytest.mark.parametrize(
    ("wrong", "part"),
    [
        ("{", "TF_CONFIG is {: JSONDecodeError"),
        ("[]", "it must be"),
        ("{}", "KeyError, 'cluster'"),
        (json.dumps({"cluster": {"worker": TWO}}), "KeyError, 'task'"),
        (text({"worker": TWO}, index="first"), "invalid literal"),
        (text({"worker": TWO}, index=2), "this is worker 2, but its cluster has no address for it"),
        (text({"worker": TWO}, index=-1), "this is worker -1"),
        (text({"worker": TWO}, "chief"), "this is chief 0"),
        (text({"worker": TWO, "ps": ["10.0.0.3:1"]}), "names ps; a worker and a chief are all there is"),
        (text({"worker": TWO}, "evaluator"), "names evaluator"),
        (text({"worker": [TWO[0], TWO[0]]}), "one address twice"),
        (text({"worker": TWO, "chief": ["a:1", "b:1"]}), "two chiefs"),
        (text({"worker": ["10.0.0.1", TWO[1]]}), "'10.0.0.1'; it must be HOST:PORT"),
        (text({"worker": ["10.0.0.1:http", TWO[1]]}), "'10.0.0.1:http'; it must be HOST:PORT"),
    ],
)
def test_a_mistake_in_tf_config_is_one_sentence(wrong, part):
    with pytest.raises(ConfigError) as error:
        read_cluster(wrong)
    assert part in str(error.value) and "\n" not in str(error.value)


# finding each other


def on_loopback():
    """Both workers' view of a cluster of two whose ports are free."""
    addresses = tuple(f"127.0.0.1:{port}" for port in free_ports(2))
    return Cluster(addresses, Worker(0, 2)), Cluster(addresses, Worker(1, 2))


def test_a_worker_that_does_not_come_is_named_after_the_time_limit(caplog):
    one, _ = on_loopback()
    name = f"worker 1 ({one.addresses[1]})"
    with pytest.raises(WorkerLost) as error:
        wait_for_others(one, seconds=0.3, patience=0)
    assert str(error.value).startswith(f"{name} did not answer within 0.3 s.")
    assert [record.getMessage() for record in caplog.records] == [f"waiting up to 0.3 s for {name}"]


def test_once_the_other_is_there_nobody_waits(caplog):
    one, other = on_loopback()
    with listening(other):
        wait_for_others(one, seconds=60, patience=0)
    assert not caplog.records


def test_a_port_that_is_taken_is_one_sentence():
    one, _ = on_loopback()
    port = int(one.addresses[0].rpartition(":")[2])
    with socket.create_server(("", port)), pytest.raises(ConfigError, match=f"the port {port}, which cannot be opened"):
        wait_for_others(one, seconds=0)


def test_of_the_others_those_are_named_that_do_not_answer():
    one, other = on_loopback()
    error = tf.errors.UnavailableError(
        None, None, "Graph execution error\nCollective ops is aborted by: Socket closed\n"
    )
    assert lost_sentence(one, error).startswith(f"worker 1 ({one.addresses[1]}) is gone, and no step")
    with listening(other):
        assert (
            "A worker is gone, silent, or started anew (Collective ops is aborted by: Socket closed)"
            in lost_sentence(one, error)
        )


def test_only_the_chief_tells_the_story(capsys):
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
            assert lines[-1].startswith("worker 1: ") == (not worker.is_chief)
    finally:
        root.handlers = handlers
        log.setLevel(level)


# what the chief tells


class Wire:
    """Stands for the strategy: what the chief adds to each sum is kept for the other's same sum."""

    def __init__(self):
        self.sums = []

    def reduce(self, op, words, axis):
        assert op is tf.distribute.ReduceOp.SUM and axis is None
        self.sums.append(words)
        return words

    def of_the_other(self):
        wire, sums = Wire(), iter(self.sums)
        wire.reduce = lambda op, words, axis: words + next(sums)
        return Broadcast(wire, Worker(1, 2))


@pytest.fixture
def wire():
    return Wire()


@pytest.mark.parametrize("message", ["", "a", "äöü\n", "x" * 1000])
def test_a_text_arrives_as_it_was_sent(wire, message):
    assert Broadcast(wire, Worker(0, 2)).text(message) == message
    assert wire.of_the_other().text("something else") == message


@pytest.mark.parametrize("size", [0, 1, 7, 8, 1000])
def test_a_file_arrives_under_its_name_byte_for_byte(wire, tmp_path, monkeypatch, size):
    monkeypatch.setattr(broadcast, "PIECE", 7)
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir(), there.mkdir()
    path = here / "step-00000007.npz"
    path.write_bytes(np.random.default_rng(size).bytes(size))
    assert Broadcast(wire, Worker(0, 2)).file(path, here) == path
    assert wire.of_the_other().file(None, there) == there / path.name
    assert (there / path.name).read_bytes() == path.read_bytes()


def test_where_the_chief_has_no_file_nobody_has_one(wire, tmp_path):
    assert Broadcast(wire, Worker(0, 2)).file(None, tmp_path) is None
    assert wire.of_the_other().file(tmp_path / "mine", tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_alone_nothing_is_sent(wire, tmp_path):
    alone = Broadcast(wire, Worker())
    assert (alone.text("a"), alone.file(tmp_path / "x", tmp_path)) == ("a", tmp_path / "x")
    alone.wait()
    assert wire.sums == []


def test_a_worker_with_another_configuration_is_refused_with_both_values_and_paths_may_differ(wire, tmp_path):
    path = write_config(tmp_path)
    check_same_on_all_workers(load_config(path), Broadcast(wire, Worker(0, 2)))
    check_same_on_all_workers(load_config(path, ["run_folder=elsewhere"]), wire.of_the_other())
    with pytest.raises(ConfigError, match="training.seed is 2 here and 1 there. Start every worker with the same one"):
        check_same_on_all_workers(load_config(path, ["training.seed=2"]), wire.of_the_other())
