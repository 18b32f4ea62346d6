"""What the chief sends arrives on every worker as it was sent."""

from types import SimpleNamespace

import numpy as np
import pytest

from keras_transformer.ground.errors import ConfigError
from tests.support.runs import write_config
from tests.support.wire import Wire
from train.config.run import load_config
from train.record.changes import check_same_on_all_workers, without_paths
from train.workers import workers
from train.workers.tf_config import Worker
from train.workers.workers import Workers


@pytest.fixture
def wire():
    return Wire()


@pytest.mark.parametrize("message", ["", "a", "äöü\n", "x" * 1000])
def test_a_text_arrives_as_it_was_sent(wire, message):
    assert Workers(wire, Worker(0, 2)).text_of_chief(message) == message
    assert wire.of_the_other().text_of_chief("something else") == message


@pytest.mark.parametrize("size", [0, 1, 7, 8, 1000])
def test_a_file_arrives_under_its_name_byte_for_byte(wire, tmp_path, monkeypatch, size):
    monkeypatch.setattr(workers, "PIECE", 7)
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir(), there.mkdir()
    path = here / "step-00000007.npz"
    path.write_bytes(np.random.default_rng(size).bytes(size))
    assert Workers(wire, Worker(0, 2)).file_of_chief(path, here) == path
    assert wire.of_the_other().file_of_chief(None, there) == there / path.name
    assert (there / path.name).read_bytes() == path.read_bytes()


def test_if_the_chief_has_no_file_no_worker_gets_one(wire, tmp_path):
    assert Workers(wire, Worker(0, 2)).file_of_chief(None, tmp_path) is None
    assert wire.of_the_other().file_of_chief(tmp_path / "mine", tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_a_single_worker_sends_nothing(wire, tmp_path):
    alone = Workers(wire)
    assert (alone.text_of_chief("a"), alone.file_of_chief(tmp_path / "x", tmp_path)) == ("a", tmp_path / "x")
    alone.wait()
    assert wire.sums == []


def test_waiting_is_a_sum_in_which_every_worker_takes_part(wire):
    Workers(wire, Worker(0, 2)).wait()
    assert len(wire.sums) == 1  # of the length of a text that has none
    other = wire.of_the_other()
    other.wait()
    with pytest.raises(StopIteration):  # it has taken all
        other.wait()


@pytest.mark.parametrize("count", [1, 2, 6])
def test_the_replicas_are_the_devices_of_all_workers_together(count):
    strategy = SimpleNamespace(num_replicas_in_sync=6)
    assert [Workers(strategy, Worker(index, count)).replicas for index in range(count)] == [6] * count


def test_the_chief_alone_does_what_is_done_once():
    chief, other = Workers(None, Worker(0, 2)), Workers(None, Worker(1, 2))
    assert (chief.only_chief(max, 1, 2), other.only_chief(max, 1, 2)) == (2, None)


def test_a_worker_with_another_configuration_is_refused_with_both_values_and_paths_may_differ(wire, tmp_path):
    path = write_config(tmp_path)
    check_same_on_all_workers(load_config(path), Workers(wire, Worker(0, 2)))
    check_same_on_all_workers(load_config(path, ["run_folder=elsewhere"]), wire.of_the_other())
    with pytest.raises(ConfigError, match="training.seed is 2 here and 1 there"):
        check_same_on_all_workers(load_config(path, ["training.seed=2"]), wire.of_the_other())


def test_workers_may_have_their_own_files_but_not_their_own_weights_and_tags(wire, tmp_path):
    path = tmp_path / "config.toml"

    def config(*entries):
        path.write_text('run_folder = "run"\n[data]\nsource = "files"\nvalidation = [["a", "b"]]\n', encoding="utf-8")
        return load_config(path, [f"data.train=[{', '.join(entries)}]"])

    heavy, light = (f'{{files = ["a", "b"], tag = "<bt>", weight = {weight}}}' for weight in (2.0, 1.0))
    check_same_on_all_workers(config('["a", "b"]', heavy), Workers(wire, Worker(0, 2)))
    check_same_on_all_workers(config('["d", "e"]', heavy.replace('"a"', '"f"')), wire.of_the_other())
    with pytest.raises(ConfigError, match="data.train is .*'<bt>', weight 1.0.* here and .*'<bt>', weight 2.0.* there"):
        check_same_on_all_workers(config('["a", "b"]', light), wire.of_the_other())
    with pytest.raises(ConfigError, match="data.train is .*weight 3.0.* here"):
        check_same_on_all_workers(config('{files = ["a", "b"], weight = 3}', heavy), wire.of_the_other())
    with pytest.raises(ConfigError, match="data.train is "):
        check_same_on_all_workers(config(heavy, '["a", "b"]'), wire.of_the_other())


def test_a_treebank_may_lie_elsewhere_on_another_worker(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text('run_folder = "run"\n[data]\nsource = "treebank"\nfiles = ["a"]\n', encoding="utf-8")
    assert without_paths(load_config(path)) == without_paths(load_config(path, ['data.files=["b"]']))
