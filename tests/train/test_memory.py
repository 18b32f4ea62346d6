"""What memory is free: of the machine, and of a container that has a limit."""

import pytest

from train.cost import memory
from train.cost.memory import free_memory


@pytest.mark.parametrize(
    ("content", "expected"),
    [("MemTotal: 9 kB\nMemAvailable:    5 kB\n", 5120), ("MemTotal: 9 kB\n", None), (None, None)],
)
def test_free_memory_is_what_linux_has_available(tmp_path, monkeypatch, content, expected):
    monkeypatch.setattr(memory, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "CONTAINER", tmp_path)
    if content:
        (tmp_path / "meminfo").write_text(content)
    assert free_memory() == expected


@pytest.mark.parametrize(
    ("limit", "expected"), [("1000", 350), ("9000", 5120), ("max", 5120), (None, 5120), ("100", 0)]
)
def test_a_container_has_what_is_left_of_its_limit(tmp_path, monkeypatch, limit, expected):
    monkeypatch.setattr(memory, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "CONTAINER", tmp_path)
    (tmp_path / "meminfo").write_text("MemAvailable:    5 kB\n")
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 640\ninactive_file 50\n")
    if limit:
        (tmp_path / "memory.max").write_text(f"{limit}\n")
    assert free_memory() == expected
