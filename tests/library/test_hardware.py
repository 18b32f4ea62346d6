"""What `keras-transformer doctor` says of cores, memory, disk and GPUs."""

import pytest

from keras_transformer.doctor import hardware
from keras_transformer.doctor.finding import NOTE, OK
from tests.support.findings import states, the_missing


@pytest.fixture
def gpu(tmp_path, monkeypatch):
    """A machine with one GPU, whose libraries are those in the folder that this returns."""
    (tmp_path / "driver/gpus/0000:01").mkdir(parents=True)
    (tmp_path / "driver/gpus/0000:01/information").write_text("Model: \t\t NVIDIA H100 80GB HBM3\nIRQ: 1\n")
    monkeypatch.setattr(hardware, "DRIVER", tmp_path / "driver")
    monkeypatch.setattr(hardware, "system_libraries", lambda: "")
    monkeypatch.setattr(hardware.site, "getsitepackages", lambda: [])
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "lib"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    (tmp_path / "lib").mkdir()
    return tmp_path / "lib"


def test_the_libraries_are_those_that_tensorflow_asks_for():
    assert {"libcudart.so.12", "libcudnn.so.9", "libcublas.so.12", "libcufft.so.11"} <= set(hardware.cuda_libraries())


def test_libraries_that_a_gpu_needs_are_missing_by_name(gpu):
    names = list(hardware.cuda_libraries())
    for name in names[2:]:
        (gpu / name).touch()
    found = the_missing(hardware.gpus())
    assert "NVIDIA H100 80GB HBM3" in found.text and f"it finds no {names[0]}, {names[1]}" in found.text
    assert "tensorflow[and-cuda]==" in found.advice
    for name in names[:2]:
        (gpu / name).touch()
    assert states(hardware.gpus()) == [OK]


def test_a_gpu_that_is_hidden_needs_no_libraries(gpu, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert states(hardware.gpus()) == [NOTE]


def test_without_a_gpu_no_library_is_missed(tmp_path, monkeypatch):
    monkeypatch.setattr(hardware, "DRIVER", tmp_path)
    monkeypatch.setattr(hardware, "DEVICES", tmp_path)
    assert states(hardware.gpus()) == [OK]
    (tmp_path / "nvidia0").touch()  # of a driver that says no names
    assert hardware.gpu_names() == ["nvidia0"]


def test_the_limits_of_a_container_are_told(monkeypatch, tmp_path):
    monkeypatch.setattr(hardware, "core_limit", lambda: 1)
    monkeypatch.setattr(hardware, "processor_cores", lambda: 1)
    monkeypatch.setattr(hardware, "memory_that_is", lambda name: 64 * 2**30)
    monkeypatch.setattr(hardware, "memory_limit", lambda: 4 * 2**30)
    monkeypatch.setattr(hardware, "free_memory", lambda: 2**30)
    text = {finding.text: finding.state for finding in hardware.machine(tmp_path)}
    assert any(line.endswith("limited to 1 by the container") for line in text)
    assert text["memory: 64.0 GiB, limited to 4.0 GiB by the container, 1.0 GiB free"] == NOTE


def test_the_disk_of_a_folder_that_is_not_there_yet_is_that_above_it(tmp_path):
    assert hardware.disk(tmp_path / "runs/mine").text.startswith(f"disk of {tmp_path}: ")
