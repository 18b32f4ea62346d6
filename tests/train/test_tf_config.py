"""TF_CONFIG: which worker this process is, and one sentence for every mistake in it."""

import json
import math

import pytest

from keras_transformer.ground.errors import ConfigError
from train.workers.tf_config import ALONE, Cluster, Worker, read_cluster

TWO = ["10.0.0.1:2222", "10.0.0.2:2222"]


def text(cluster, kind="worker", index=0):
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})


@pytest.mark.parametrize("nothing", [None, ""])
def test_without_tf_config_a_worker_is_alone(nothing):
    assert read_cluster(nothing) == ALONE and ALONE.worker == Worker(0, 1)


@pytest.mark.parametrize("index", [0, 1, "1"])
def test_a_worker_knows_its_place(index):
    assert read_cluster(text({"worker": TWO}, index=index)) == Cluster(tuple(TWO), Worker(int(index), 2))


@pytest.mark.parametrize("index", [0, 1, 2])
def test_the_others_are_all_but_this_worker(index):
    addresses = ("10.0.0.1:1", "[::1]:2", "10.0.0.3:3")
    all_of_them = {
        "worker 0 (10.0.0.1:1)": ("10.0.0.1", 1),
        "worker 1 ([::1]:2)": ("::1", 2),
        "worker 2 (10.0.0.3:3)": ("10.0.0.3", 3),
    }
    expected = [item for number, item in enumerate(all_of_them.items()) if number != index]
    assert list(Cluster(addresses, Worker(index, 3)).others.items()) == expected


def test_the_last_port_is_one():
    assert read_cluster(text({"worker": ["10.0.0.1:65535"]})).addresses == ("10.0.0.1:65535",)


def test_a_chief_comes_before_the_workers():
    jobs = {"worker": TWO, "chief": ["10.0.0.9:1"]}
    assert read_cluster(text(jobs, "worker", 1)) == Cluster(("10.0.0.9:1", *TWO), Worker(2, 3))
    assert read_cluster(text(jobs, "chief")).worker.is_chief


@pytest.mark.parametrize(
    ("wrong", "part"),
    [
        ("{", "TF_CONFIG is {: JSONDecodeError"),
        *((wrong, "it must be") for wrong in ("[]", "1", "null", '"text"', '{"cluster": [], "task": 1}')),
        *((text(jobs), "it must be") for jobs in (None, 3, ["worker"], {"worker": 3}, {"worker": None})),
        *((json.dumps({"cluster": {"worker": TWO}, "task": task}), "it must be") for task in (None, [], "first", 0)),
        ("{}", "KeyError, 'cluster'"),
        (json.dumps({"cluster": {"worker": TWO}}), "KeyError, 'task'"),
        (text({"worker": TWO}, index="first"), "invalid literal"),
        (text({"worker": TWO}, index=2), "this process worker 2, but its cluster has no address for it"),
        (text({"worker": TWO}, index=-1), "this process worker -1"),
        (text({"worker": TWO}, "chief"), "this process chief 0"),
        (text({"worker": TWO, "ps": ["10.0.0.3:1"]}), "names ps; only worker and chief"),
        (text({"worker": TWO}, "evaluator"), "names evaluator"),
        (text({"worker": [TWO[0], TWO[0]]}), "one address twice"),
        (text({"worker": TWO, "chief": ["a:1", "b:1"]}), "two chiefs"),
        (text({"worker": ["10.0.0.1", TWO[1]]}), "'10.0.0.1'; it must be HOST:PORT"),
        (text({"worker": ["10.0.0.1:http", TWO[1]]}), "'10.0.0.1:http'; it must be HOST:PORT"),
        (text({"worker": ["10.0.0.1:70000", TWO[1]]}), "a port from 1 to 65535"),
        (text({"worker": ["10.0.0.1:65536", TWO[1]]}), "a port from 1 to 65535"),
        (text({"worker": [TWO[0], "10.0.0.1:0"]}), "'10.0.0.1:0'"),
        (text({"worker": [TWO[0], ":2222"]}), "':2222'; it must be HOST:PORT"),
        (text({"worker": [TWO[0], "10.0.0.1:" + "9" * 5000]}), "a port from 1 to 65535"),
        (text({"worker": TWO}, ["worker"]), "names ['worker']; only worker and chief"),
        (text({"worker": TWO}, None), "names None; only worker and chief"),
        (text({"worker": TWO}, index=0.7), "the index 0.7 is not a whole number"),
        (text({"worker": TWO}, index=True), "the index True is not a whole number"),
        (text({"worker": TWO}, index=math.inf), "the index inf is not a whole number"),
    ],
)
def test_a_mistake_in_tf_config_is_one_sentence(wrong, part):
    with pytest.raises(ConfigError) as error:
        read_cluster(wrong)
    assert part in str(error.value) and "\n" not in str(error.value)
