"""Settings that must stand before the first test file imports Keras or TensorFlow, and what `make check` leaves out."""

import os
import subprocess
import sys

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

TRAINED = {"finished"}  # fixtures that train a whole run: the tests that use them are slow


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The configuration file, the run folder, and the ended process of a first training (support/runs.py)."""
    from tests.support.processes import python
    from tests.support.runs import write_config

    config = write_config(tmp_path_factory.mktemp("finished"))
    process = python("-m", "train", config)
    assert process.returncode == 0, process.stderr[-3000:]
    return config, config.with_suffix(""), process


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if TRAINED & set(item.fixturenames):
            item.add_marker(pytest.mark.slow)


class NoPython(subprocess.Popen):
    """What `subprocess.Popen` is while a test runs that is not marked slow: it refuses to start Python."""

    def __init__(self, args, *rest, **options):
        assert args[0] != sys.executable, "this test starts a process: mark it with @pytest.mark.slow"
        super().__init__(args, *rest, **options)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    with pytest.MonkeyPatch.context() as patch:
        if item.get_closest_marker("slow") is None:
            patch.setattr(subprocess, "Popen", NoPython)
        return (yield)
