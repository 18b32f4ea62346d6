"""What `keras-transformer doctor` says of cores, memory, disk and GPUs."""

import os
import shutil

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


def test_the_disk_of_a_folder_that_is_not_there_yet_is_that_above_it(tmp_path):
    assert hardware.disk(tmp_path / "runs/mine").text.startswith(f"disk of {tmp_path}: ")


GIB = 2**30


@pytest.mark.parametrize(
    "place, free, expected",
    [("runs", 2 * GIB, OK), ("runs", 2 * GIB - 1, NOTE), ("file", 2 * GIB, OK), ("read only/runs", 2 * GIB, NOTE)],
)
def test_a_disk_that_is_nearly_full_or_not_writable_is_noted(monkeypatch, tmp_path, place, free, expected):
    monkeypatch.setattr(hardware.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9 * GIB, 0, free))
    monkeypatch.setattr(hardware.os, "access", lambda path, mode: mode == os.W_OK and path.name != "read only")
    (tmp_path / "read only").mkdir()
    (tmp_path / "file").touch()
    found = hardware.disk(tmp_path / place)
    assert found.state == expected and f": {free / GIB:.1f} GiB free" in found.text
    assert ("not writable" in found.text) == place.startswith("read only")


def test_a_gpu_that_no_number_names_is_hidden_and_one_that_a_number_names_is_not(gpu, monkeypatch):
    for value, text in (("-1", "hidden"), ("0", "cannot use")):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
        assert text in " ".join(finding.text for finding in hardware.gpus())
