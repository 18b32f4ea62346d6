"""Which version runs: of a checkout, of an installed package, and of a folder that somebody copied."""

import importlib.metadata
import tomllib

import pytest

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


@pytest.mark.parametrize("content", [None, '[project]\nname = "other"\nversion = "7"\n', "[tool.x]\n"])
@pytest.mark.parametrize(("number", "said"), [("9.9", "9.9"), (None, "of an unknown version")])
def test_an_installed_package_has_that_which_pip_wrote_down(tmp_path, monkeypatch, content, number, said):
    if content is not None:  # site-packages may have the file of another project beside it
        (tmp_path / "pyproject.toml").write_text(content, encoding="utf-8")
    monkeypatch.setattr(version, "CHECKOUT", tmp_path / "pyproject.toml")
    installed(monkeypatch, number)
    assert version.version_line() == f"keras-transformer-mt {said}"
