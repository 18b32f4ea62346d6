"""Findings of `keras-transformer doctor` that tests look at, and damage that it must find."""

import importlib.metadata

from keras_transformer.doctor.finding import MISSING


def states(findings):
    return [finding.state for finding in findings]


def the_missing(findings):
    """The one finding that is MISSING, which must say what to do."""
    (found,) = [finding for finding in findings if finding.state == MISSING]
    assert found.advice
    return found


def removed(path):
    path.unlink()


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def installed(monkeypatch, number):
    """Let this project be installed in a version, or not at all: None."""

    def found(name):
        if number is None or name != "keras-transformer-mt":
            raise importlib.metadata.PackageNotFoundError(name)
        return number

    monkeypatch.setattr(importlib.metadata, "version", found)
