"""The processor and the packages that reports and benchmarks name."""

import os
import platform

import pytest

from keras_transformer.ground import machine
from keras_transformer.ground.machine import (
    free_memory,
    package_versions,
    processor,
    processor_and_cores,
    processor_cores,
)


def test_a_missing_package_is_left_out_and_python_is_there():
    found = package_versions(["numpy", "a-package-that-nobody-has"])
    assert list(found) == ["python", "numpy"]
    assert found["python"] == platform.python_version()


def test_the_processor_is_named_as_linux_names_it(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "cpuinfo")
    machine.CPUINFO.write_text("processor : 0\nmodel name\t: AMD EPYC: 2\n\nprocessor : 1\nmodel name\t: other\n")
    assert processor() == "AMD EPYC: 2"
    assert processor_and_cores().startswith("AMD EPYC: 2, ")


@pytest.mark.parametrize(("limit", "expected"), [(None, 4), (2, 2), (8, 4)])
def test_a_container_may_have_fewer_cores_than_it_sees(limit, expected, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)), raising=False)
    monkeypatch.setattr(machine, "core_limit", lambda: limit)
    assert processor_cores() == expected


@pytest.mark.parametrize(
    ("content", "left", "expected"),
    [
        ("MemTotal: 9 kB\nMemAvailable:    5 kB\n", None, 5120),
        ("MemTotal: 9 kB\nMemAvailable:    5 kB\n", 350, 350),
        ("MemTotal: 9 kB\nMemAvailable:    5 kB\n", 9000, 5120),
        ("MemTotal: 9 kB\n", None, None),
        (None, 350, 350),
        (None, None, None),
    ],
)
def test_free_memory_is_what_linux_has_available_and_a_container_left(tmp_path, monkeypatch, content, left, expected):
    monkeypatch.setattr(machine, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(machine, "memory_left", lambda: left)
    if content:
        machine.MEMORY.write_text(content)
    assert free_memory() == expected


def test_without_linux_python_names_the_processor(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "nothing")
    monkeypatch.setattr(platform, "processor", lambda: "arm")
    assert processor() == "arm"
    monkeypatch.setattr(platform, "processor", lambda: "")
    assert processor() == platform.machine()
