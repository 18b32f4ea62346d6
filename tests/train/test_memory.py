"""What memory is free for training: that of the machine, and nothing that could be said of a GPU's."""

import pytest
import tensorflow as tf

from train.cost import memory


@pytest.mark.parametrize("gpus", [[], ["GPU:0"]])
def test_a_gpu_is_one_that_tensorflow_sees(monkeypatch, gpus):
    monkeypatch.setattr(tf.config, "list_logical_devices", {"GPU": gpus, "CPU": ["CPU:0"]}.get)
    assert memory.has_gpu() is bool(gpus)


def test_bytes_are_said_in_gigabytes():
    assert [memory.gigabytes(size) for size in (0, 2**30, 5 * 2**29, 2**40)] == [
        "0.0 GiB",
        "1.0 GiB",
        "2.5 GiB",
        "1024.0 GiB",
    ]
