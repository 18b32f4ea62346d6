"""The processor and the packages that reports and benchmarks name."""

import os
import platform

import pytest

from keras_transformer import machine
from keras_transformer.machine import package_versions, processor, processor_and_cores, processor_cores


def test_a_missing_package_is_left_out_and_python_is_there():
    found = package_versions(["numpy", "a-package-that-nobody-has"])
    assert list(found) == ["python", "numpy"]
    assert found["python"] == platform.python_version()


def test_the_processor_is_named_as_linux_names_it(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "cpuinfo")
    machine.CPUINFO.write_text("processor : 0\nmodel name\t: AMD EPYC: 2\n\nprocessor : 1\nmodel name\t: other\n")
    assert processor() == "AMD EPYC: 2"
    assert processor_and_cores().startswith("AMD EPYC: 2, ")


def test_cores_that_the_process_may_not_use_are_told_from_the_others(monkeypatch):
    monkeypatch.setattr(machine, "processor", lambda: "AMD EPYC")
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    for allowed, expected in (({0, 1, 2, 3}, "AMD EPYC, 4 cores"), ({2}, "AMD EPYC, 4 cores, 1 of them used")):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=allowed: cores, raising=False)
        assert processor_and_cores() == expected


@pytest.mark.parametrize(
    ("quota", "expected"), [("max 100000", 4), ("150000 100000", 2), ("20000 100000", 1), ("800000 100000", 4), ("", 4)]
)
def test_a_container_may_have_fewer_cores_than_it_sees(quota, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)), raising=False)
    monkeypatch.setattr(machine, "QUOTA", tmp_path / "cpu.max")
    assert processor_cores() == 4
    machine.QUOTA.write_text(f"{quota}\n")
    assert processor_cores() == expected


def test_without_linux_python_names_the_processor(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "nothing")
    monkeypatch.setattr(platform, "processor", lambda: "arm")
    assert processor() == "arm"
    monkeypatch.setattr(platform, "processor", lambda: "")
    assert processor() == platform.machine()
