"""The processor and the packages that reports and benchmarks name."""

import os
import platform

from keras_transformer import machine
from keras_transformer.machine import processor, processor_and_cores, versions


def test_a_missing_package_is_left_out_and_python_is_there():
    found = versions(["numpy", "a-package-that-nobody-has"])
    assert list(found) == ["python", "numpy"]
    assert found["python"] == platform.python_version()


def test_the_processor_is_named_as_linux_names_it(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "cpuinfo")
    machine.CPUINFO.write_text("processor : 0\nmodel name\t: AMD EPYC: 2\n\nprocessor : 1\nmodel name\t: other\n")
    assert processor() == "AMD EPYC: 2"
    assert processor_and_cores() == f"AMD EPYC: 2, {os.cpu_count()} cores"


def test_without_linux_python_names_the_processor(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "nothing")
    monkeypatch.setattr(platform, "processor", lambda: "arm")
    assert processor() == "arm"
    monkeypatch.setattr(platform, "processor", lambda: "")
    assert processor() == platform.machine()
