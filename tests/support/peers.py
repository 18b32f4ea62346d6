"""Packages of comparisons: they are imported by the test that uses one, since some take seconds."""

import importlib
import importlib.util

import pytest


class Peer:
    """A package by its name, imported when a test first uses something of it."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name.startswith("_"):  # pytest asks every name in a file of tests for such
            raise AttributeError(name)
        return getattr(importlib.import_module(self._name), name)


def needs(*packages):
    """Skips the tests of a file if one of these packages is not installed."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    reason = f"{', '.join(missing)} not installed: pip install -r requirements-peers.txt"
    return pytest.mark.skipif(bool(missing), reason=reason)
