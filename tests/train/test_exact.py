"""One replica, two, two processes, two micro-batches: the same corpus and seed make the same training."""

import json
import os
import sys

import numpy as np
import pytest

from keras_transformer.recurrent.config import RecurrentConfig
from tests.support.processes import end, start_fork, start_workers
from tests.support.training import ORDER, PAIRS, TINY, TRAINING, momenta_of, train, training_model, weights_of
from train.data.batches import PackedBatches
from train.data.links import Linker
from train.workers.strategy import choose_strategy, describe
from train.workers.tf_config import ONLY_WORKER, read_cluster

pytestmark = pytest.mark.slow

STEPS = 50
DROPPING = 8  # steps with dropout, with guided alignment, and of a recurrent model
RECURRENT = RecurrentConfig(vocab_size=TINY.vocab_size, d_model=16, encoder_layers=1, decoder_layers=1, dropout=0.0)
# steady: where training is chaotic, differences in the last bit grow
SETTINGS = {"learning_rate_factor": 0.1, "ema_decay": 0.9}


def other_models():
    """A model with guided alignment, and a recurrent one."""
    return [training_model(guided_alignment=0.3, **SETTINGS), training_model(config=RECURRENT, **SETTINGS)]


def batches_of(worker=ONLY_WORKER):
    linker = Linker(PAIRS, TINY.vocab_size)
    return PackedBatches(PAIRS, TRAINING.tokens_per_batch, TRAINING.row_lengths, ORDER, worker, linker=linker)


def train_in_all_ways(path):
    """Train without dropout, with it, and the other models, on the devices of this process and its cluster."""
    import tensorflow as tf

    if count := int(os.environ.get("LOGICAL_DEVICES", 0)):
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
    cluster = read_cluster(os.environ.get("TF_CONFIG"))
    strategy = choose_strategy(cluster)
    batches = batches_of(cluster.worker)
    with strategy.scope():
        models = [*(training_model(dropout, xla=True, **SETTINGS) for dropout in (0.0, 0.2)), *other_models()]
    counts = (STEPS, DROPPING, DROPPING, DROPPING)
    logs = [train(model, 0, steps, batches) for model, steps in zip(models, counts, strict=True)]
    lists = {"weights": weights_of(models[0]), "momenta": momenta_of(models[0])}
    arrays = {f"{name}/{number}": array for name, values in lists.items() for number, array in enumerate(values)}
    np.savez(path, found=json.dumps({"logs": logs, "devices": describe(strategy)}), **arrays)


def read(path):
    with np.load(path) as file:
        found = json.loads(str(file["found"]))
        lists = {
            kind: [file[name] for name in file.files if name.startswith(f"{kind}/")] for kind in ("weights", "momenta")
        }
    return found | lists


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """From each way of sharing the work to its results: logs, weights, momenta and devices."""
    folder = tmp_path_factory.mktemp("exact")
    program, log = ("-m", "tests.train.test_exact"), folder / "replicas.log"
    replicas = start_fork(*program, folder / "replicas.npz", log=log, LOGICAL_DEVICES="2")
    logs = [folder / f"worker{index}.log" for index in (0, 1)]
    workers = start_workers(lambda index: (*program, folder / f"worker{index}.npz"), logs)
    ended = end([replicas, *workers])
    assert ended == [0, 0, 0], "".join(path.read_text() for path in folder.glob("*.log"))
    found = {path.stem: read(path) for path in folder.glob("*.npz")}
    for name, micro_batches in (("one", 1), ("micro_batches", 2)):
        model = training_model(xla=True, micro_batches=micro_batches, **SETTINGS)
        logs = [train(model, 0, STEPS)]
        found[name] = {"logs": logs, "weights": weights_of(model), "momenta": momenta_of(model)}
    found["one"]["logs"] += [train(model, 0, DROPPING, batches_of()) for model in other_models()]
    return found


WAYS = ["replicas", "worker0", "worker1", "micro_batches"]


def test_the_work_is_shared_as_each_way_says(found):
    assert found["replicas"]["devices"] == "2 CPU replicas (MirroredStrategy)"
    assert found["worker1"]["devices"] == "2 CPU replicas of 2 workers (MultiWorkerMirroredStrategy)"


@pytest.mark.parametrize("way", WAYS)
def test_every_step_logs_the_same_global_numbers(found, way):
    assert len(found[way]["logs"][0]) == STEPS
    for step, expected in zip(found[way]["logs"][0], found["one"]["logs"][0], strict=True):
        assert step == {name: pytest.approx(value, rel=1e-4) for name, value in expected.items()}


@pytest.mark.parametrize("way", WAYS)
def test_the_last_weights_are_the_same(found, way):
    for weights, expected in zip(found[way]["weights"], found["one"]["weights"], strict=True):
        np.testing.assert_allclose(weights, expected, atol=1e-4)


@pytest.mark.parametrize("way", WAYS)
def test_the_optimizer_remembers_the_same_gradients(found, way):
    """Adam's updates do not change if every gradient is doubled; its moments do. Moving averages are compared too."""
    assert len(found["one"]["momenta"]) == 3 * len(found["one"]["weights"])
    for moment, expected in zip(found[way]["momenta"], found["one"]["momenta"], strict=True):
        np.testing.assert_allclose(moment, expected, atol=0.02 * np.abs(expected).max())


def test_training_lowers_the_loss(found):
    losses = [step["loss"] for step in found["one"]["logs"][0]]
    assert losses[-1] < 0.75 * losses[0]


# dropout


def test_two_processes_drop_what_two_replicas_of_one_process_drop(found):
    for worker in ("worker0", "worker1"):
        for step, expected in zip(found[worker]["logs"][1], found["replicas"]["logs"][1], strict=True):
            assert step == {name: pytest.approx(value, rel=1e-4) for name, value in expected.items()}


# other models


@pytest.mark.parametrize("way", ["replicas", "worker0", "worker1"])
def test_guided_alignment_is_the_same_however_links_are_shared(found, way):
    for step, expected in zip(found[way]["logs"][-2], found["one"]["logs"][-2], strict=True):
        assert step == {name: pytest.approx(value, rel=1e-4) for name, value in expected.items()}
        assert "alignment_loss" in step


@pytest.mark.nightly
@pytest.mark.parametrize("way", ["replicas", "worker0", "worker1"])
def test_every_step_of_a_recurrent_model_logs_the_same_global_numbers(found, way):
    for step, expected in zip(found[way]["logs"][-1], found["one"]["logs"][-1], strict=True):
        assert step == {name: pytest.approx(value, rel=1e-4) for name, value in expected.items()}


if __name__ == "__main__":
    train_in_all_ways(sys.argv[1])
