"""What `keras-transformer doctor` says of the operating system."""

import platform

import pytest

from keras_transformer.doctor.finding import MISSING, NOTE, OK
from keras_transformer.doctor.packages import software
from keras_transformer.doctor.systems import system

CASES = [  # what Python says of a machine, the state, and what the reader must find in the lines
    ("Linux", "x86_64", "6.1.0-28-amd64", OK, ["Linux on x86_64"]),
    ("Linux", "aarch64", "6.8.0", OK, ["Linux on aarch64"]),
    ("Linux", "x86_64", "5.15.153.1-microsoft-standard-WSL2", OK, ["in WSL"]),
    ("Darwin", "arm64", "24.1.0", NOTE, ["macOS", "nobody has run the tests", "make check"]),
    ("Darwin", "x86_64", "22.6.0", MISSING, ["tensorflow-text", "ai-edge-litert", "Apple silicon"]),
    ("Windows", "AMD64", "11", NOTE, ["tensorflow-text", "SavedModel", "wsl --install"]),
    ("FreeBSD", "amd64", "14.1", NOTE, ["FreeBSD", "not tested"]),
]


@pytest.mark.parametrize(("name", "kind", "release", "state", "words"), CASES)
def test_each_system_is_told_what_it_lacks_and_what_to_do(monkeypatch, name, kind, release, state, words):
    for function, value in {"system": name, "machine": kind, "release": release}.items():
        monkeypatch.setattr(platform, function, lambda value=value: value)
    found = system()
    assert found.state == state and bool(found.advice) == (state != OK)
    assert [word for word in words if word not in f"{found.text} {found.advice}"] == []


def test_it_is_among_the_lines_of_the_software(monkeypatch):
    monkeypatch.setattr(platform, "system", lambda: "Plan9")
    assert any("Plan9" in finding.text for finding in software())
