"""A script in a process of its own, under another Keras backend."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def run_without_tensorflow(backend, script, path):
    """Run `script`, which writes `path`, its argument, and prints last whether TensorFlow was imported: it was not."""
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed: pip install -r requirements-peers.txt")
    folders = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    environment = os.environ | {"KERAS_BACKEND": backend, "PYTHONPATH": folders, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", script, str(path)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.split()[-1] == "False"
