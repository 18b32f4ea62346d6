"""Settings that must stand before the first test file imports Keras or TensorFlow."""

import os

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The configuration file, the run folder, and the ended process of a first training (support/runs.py)."""
    from tests.support.processes import python
    from tests.support.runs import write_config

    config = write_config(tmp_path_factory.mktemp("finished"))
    process = python("-m", "train", config)
    assert process.returncode == 0, process.stderr[-3000:]
    return config, config.with_suffix(""), process
