"""The types of all that is not a tensor hold, in every module."""

import tomllib

import pytest

from tests.support.places import ROOT
from tests.support.processes import python

TYPES = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]


def test_no_module_is_left_out():
    assert not any("ignore_errors" in override for override in TYPES["overrides"])


@pytest.mark.release
def test_the_types_are_right(tmp_path):
    pytest.importorskip("mypy", reason="pip install -r requirements-lint.txt")
    run = python("-m", "mypy", "--cache-dir", tmp_path / "cache")
    assert run.returncode == 0, run.stdout[-2000:]
