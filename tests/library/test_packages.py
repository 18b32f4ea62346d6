"""What `keras-transformer doctor` says of Python, TensorFlow and Keras."""

import email.message
import importlib.metadata
import tomllib

import pytest
from packaging.requirements import Requirement

from keras_transformer.doctor import packages
from keras_transformer.doctor.finding import MISSING
from keras_transformer.ground import version as version_module
from tests.support.findings import cut, removed, the_missing
from tests.support.places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(autouse=True)
def without_the_files_of_tensorflow(request, monkeypatch):
    """There are 22,000 of them; only the test of files looks at files."""
    if "distribution" not in request.fixturenames:
        monkeypatch.setattr(packages, "damaged_file", lambda distribution: None)


def test_a_checkout_and_an_installed_package_ask_for_the_same(monkeypatch):
    in_checkout = packages.declared()
    extras = PROJECT["optional-dependencies"]
    required = PROJECT["dependencies"] + [
        f'{text}; extra == "{extra}"' for extra, texts in extras.items() for text in texts
    ]
    metadata = email.message.Message()
    metadata["Requires-Python"] = PROJECT["requires-python"]
    monkeypatch.setattr(version_module, "CHECKOUT", ROOT / "no such file")
    monkeypatch.setattr(importlib.metadata, "metadata", lambda name: metadata)
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: required)
    installed = packages.declared()
    assert installed == in_checkout


def test_every_package_that_is_needed_is_looked_at():
    named = " ".join(finding.text for finding in packages.software())
    for requirement in PROJECT["dependencies"]:
        assert Requirement(requirement).name in named


@pytest.fixture
def without(monkeypatch):
    """A function after which packages have the versions that it is given; None: they are not installed."""
    real = importlib.metadata.version

    def replace(**versions):
        def version(name):
            found = versions.get(name.replace("-", "_"), name)
            if found is None:
                raise importlib.metadata.PackageNotFoundError(name)
            return real(name) if found == name else found

        monkeypatch.setattr(importlib.metadata, "version", version)

    return replace


def test_tensorflow_that_is_not_there_is_missing(without):
    without(tensorflow=None, tensorflow_cpu=None, tf_nightly=None)
    found = the_missing(packages.software())
    assert "tensorflow is not installed" in found.text and found.advice == "pip install 'tensorflow>=2.21'"


def test_a_package_that_is_too_old_is_missing(without):
    without(keras="3.1.0")
    found = the_missing(packages.software())
    assert "keras is 3.1.0, and must be >=3.15" in found.text


def test_tensorflow_text_of_another_tensorflow_is_missing(without):
    without(tensorflow_text="2.18.0")
    assert the_missing(packages.software()).advice.startswith("pip install 'tensorflow-text==2.")


def test_python_of_another_range_is_missing(monkeypatch):
    monkeypatch.setattr(packages.platform, "python_version", lambda: "3.9.1")
    assert "3.9.1" in the_missing(packages.software()).text


@pytest.mark.parametrize(("flags", "expected"), [("fpu sse4_2 avx avx2", 0), ("fpu sse4_2 avx512_none", 1), (None, 0)])
def test_a_processor_without_avx_cannot_start_tensorflow(monkeypatch, flags, expected):
    monkeypatch.setattr(packages, "cpuinfo", lambda: f"flags\t\t: {flags}\n" if flags else "")
    assert sum("AVX" in finding.text for finding in packages.software() if finding.state == MISSING) == expected


@pytest.fixture
def distribution(tmp_path):
    """A package of one module, as pip installs it."""
    info = tmp_path / "thing-1.0.dist-info"
    info.mkdir()
    (tmp_path / "thing.py").write_text("x = 1\n")
    (info / "METADATA").write_text("Name: thing\nVersion: 1.0\n")
    (info / "RECORD").write_text("thing.py,sha256=abc,6\nthing-1.0.dist-info/RECORD,,\n")
    return importlib.metadata.Distribution.at(info)


@pytest.mark.parametrize("damage", ["removed", "cut"])
def test_a_file_of_a_package_that_pip_did_not_leave_so_is_named(tmp_path, distribution, damage):
    assert packages.damaged_file(distribution) is None
    removed(tmp_path / "thing.py") if damage == "removed" else cut(tmp_path / "thing.py")
    assert packages.damaged_file(distribution).startswith("thing.py")


def test_a_file_of_a_package_that_has_grown_is_named_and_what_python_compiled_is_not(tmp_path, distribution):
    record = tmp_path / "thing-1.0.dist-info" / "RECORD"
    record.write_text(record.read_text() + "__pycache__/thing.cpython-311.pyc,,\n")
    assert packages.damaged_file(distribution) is None
    (tmp_path / "thing.py").write_text("x = 10\n")
    assert packages.damaged_file(distribution) == "thing.py has 7 bytes of 6"
