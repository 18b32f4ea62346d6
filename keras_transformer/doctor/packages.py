"""Python, TensorFlow, Keras and what else is needed, by what their metadata says: nothing is imported."""

import csv
import importlib.metadata
import os
import platform
import re
from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet

from keras_transformer.doctor.finding import Finding, missing, ok
from keras_transformer.doctor.systems import system
from keras_transformer.ground.command_table import DISTRIBUTION
from keras_transformer.ground.machine import cpuinfo
from keras_transformer.ground.version import project_of_checkout, version_line

TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tf-nightly")  # any of them is imported as tensorflow


def declared() -> tuple[SpecifierSet, list[Requirement]]:
    """Return the range of Python and the packages of every command: of pyproject.toml, or as pip wrote them down."""
    if project := project_of_checkout():
        return SpecifierSet(project["requires-python"]), [Requirement(text) for text in project["dependencies"]]
    needed = [Requirement(text) for text in importlib.metadata.requires(DISTRIBUTION) or ()]
    python = SpecifierSet(importlib.metadata.metadata(DISTRIBUTION)["Requires-Python"])
    return python, [requirement for requirement in needed if requirement.marker is None]


def software() -> Iterator[Finding]:
    """Yield findings on this project, Python, TensorFlow, Keras and the other packages that every command needs."""
    python, requirements = declared()
    yield ok(version_line())
    yield system()
    version = platform.python_version()
    if python.contains(version, prereleases=True):
        yield ok(f"Python {version}")
    else:
        yield missing(f"Python {version}: it must be {python}", "make PYTHON=python3.12, or a new environment")
    for requirement in requirements:
        if requirement.name == "tensorflow":
            yield from tensorflow(requirement)
        elif lack := lack_of(requirement):
            yield missing(lack, f"pip install '{requirement}'")
        else:
            yield ok(f"{requirement.name} {version_of(requirement.name)}")


def tensorflow(requirement: Requirement) -> Iterator[Finding]:
    """Yield findings on TensorFlow: its version, whether all of its files are there, and whether it can start here."""
    name = tensorflow_name()
    if lack := lack_of(Requirement(f"{name}{requirement.specifier}")):
        yield missing(lack, f"pip install '{requirement}'")
        return
    distribution = importlib.metadata.distribution(name)
    damaged = damaged_file(distribution)
    if damaged is None:
        yield ok(f"{name} {distribution.version}, with all of its files")
    else:
        again = f"pip install --force-reinstall --no-deps {name}=={distribution.version}"
        yield missing(f"{name} {distribution.version} is damaged: {damaged}", again)
    flags = re.search(r"^flags\s*:.*$", cpuinfo(), re.MULTILINE)
    if flags and not re.search(r"\bavx\b", flags[0]):
        yield missing(
            "The processor has no AVX, without which TensorFlow ends with 'Illegal instruction'",
            "in a virtual machine, pass the processor of its host through (qemu: -cpu host)",
        )
    text_version = version_of("tensorflow-text")
    if text_version and minor(text_version) != minor(distribution.version):
        yield missing(
            f"tensorflow-text {text_version} is for another TensorFlow than {distribution.version}",
            f"pip install 'tensorflow-text=={minor(distribution.version)}.*'",
        )


def tensorflow_name() -> str:
    """Return which of the distributions of TensorFlow is installed; "tensorflow" if none is."""
    return next((name for name in TENSORFLOW if version_of(name)), TENSORFLOW[0])


def damaged_file(distribution: importlib.metadata.Distribution) -> str | None:
    """Return which file is not there, or not of the size that pip wrote down; None if all are as they were."""
    for name, _, size in csv.reader((distribution.read_text("RECORD") or "").splitlines()):
        if name.endswith(".pyc"):
            continue
        try:
            actual = os.stat(str(distribution.locate_file(name))).st_size
        except OSError as error:
            return f"{name}: {error.strerror}"
        if size and actual != int(size):
            return f"{name} has {actual:,} bytes of {int(size):,}"
    return None


def lack_of(requirement: Requirement) -> str:
    """Return what is wrong with an installed package; "" if it is as required."""
    version = version_of(requirement.name)
    if version is None:
        return f"{requirement.name} is not installed"
    if not requirement.specifier.contains(version, prereleases=True):
        return f"{requirement.name} is {version}, and must be {requirement.specifier}"
    return ""


def version_of(name: str) -> str | None:
    """Return the version of an installed package; None if it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def minor(version: str) -> str:
    """Return "2.21" of "2.21.0"."""
    return ".".join(version.split(".")[:2])


def cuda_requirements() -> Iterator[Requirement]:
    """Yield what the installed TensorFlow asks for under its extra and-cuda."""
    try:
        texts = importlib.metadata.requires(tensorflow_name()) or ()
    except importlib.metadata.PackageNotFoundError:
        return
    for text in texts:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if requirement.marker and requirement.name.startswith("nvidia-"):
            yield requirement
