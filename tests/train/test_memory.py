"""What memory is free for training: that of the machine, and nothing that could be said of a GPU's."""

import pytest

from train.cost import memory


@pytest.mark.parametrize(("has_gpu", "expected"), [(False, 5120), (True, None)])
def test_the_memory_of_the_machine_says_nothing_of_a_gpu(monkeypatch, has_gpu, expected):
    monkeypatch.setattr(memory.machine, "free_memory", lambda: 5120)
    monkeypatch.setattr(memory, "has_gpu", lambda: has_gpu)
    assert memory.free_memory() == expected
