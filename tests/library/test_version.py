"""Which version runs: of a checkout, of an installed package, and of a folder that somebody copied."""

import importlib.metadata
import tomllib

from keras_transformer import version
from tests.support.places import ROOT


def installed(monkeypatch, number):
    def found(name):
        if number is None or name != "keras-transformer-mt":
            raise importlib.metadata.PackageNotFoundError(name)
        return number

    monkeypatch.setattr(importlib.metadata, "version", found)


def test_a_checkout_has_the_version_of_its_pyproject_whatever_is_installed(monkeypatch):
    installed(monkeypatch, "9.9")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert version.project_of_checkout() == project
    assert version.version_line() == f"keras-transformer-mt {project['version']}"
