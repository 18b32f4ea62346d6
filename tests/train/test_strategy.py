"""Where training runs: on all devices of this machine or of a cluster; a GPU that is not used is named."""

import types

import pytest
import tensorflow as tf

from train.workers.strategy import choose_strategy, warn_of_unused_gpu


@pytest.mark.parametrize(
    ("gpus", "cpus", "used"),
    [
        ([], ["CPU:0"], None),
        ([], ["CPU:0", "CPU:1"], ["CPU:0", "CPU:1"]),
        (["GPU:0"], ["CPU:0", "CPU:1"], None),
        (["GPU:0", "GPU:1"], ["CPU:0"], ["GPU:0", "GPU:1"]),
    ],
)
def test_one_machine_trains_on_all_its_gpus_or_on_its_processors(monkeypatch, gpus, cpus, used):
    devices = {"GPU": gpus, "CPU": cpus}
    listed = {kind: [types.SimpleNamespace(name=name) for name in names] for kind, names in devices.items()}
    monkeypatch.setattr(tf.config, "list_logical_devices", listed.get)
    monkeypatch.setattr(tf.distribute, "MirroredStrategy", list)
    assert choose_strategy() == (used or tf.distribute.get_strategy())


@pytest.mark.parametrize(
    ("has_driver", "visible", "is_warned"),
    [(True, None, True), (True, "0,1", True), (True, "-1", False), (True, "", False), (False, None, False)],
)
def test_a_gpu_that_is_neither_used_nor_hidden_is_named(tmp_path, monkeypatch, caplog, has_driver, visible, is_warned):
    """TensorFlow without CUDA's libraries sees no GPU, and says nothing at the commands' level of logging."""
    monkeypatch.setattr("tensorflow.config.list_physical_devices", lambda kind: [])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    if has_driver:
        (tmp_path / "version").touch()
    warn_of_unused_gpu(tmp_path / "version")
    assert ('pip install "tensorflow[and-cuda]==' in caplog.text) == is_warned


def test_a_gpu_that_is_seen_is_no_cause_for_a_warning(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("tensorflow.config.list_physical_devices", lambda kind: ["GPU:0"])
    (tmp_path / "version").touch()
    warn_of_unused_gpu(tmp_path / "version")
    assert caplog.text == ""
