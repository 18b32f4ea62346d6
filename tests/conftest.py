"""Settings that must stand before the first test file imports Keras or TensorFlow, and what `make check` leaves out."""

import multiprocessing
import os
import subprocess
import sys

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
# The tests compile much and run little: compiling without optimization takes half the time. test_killed.py and the
# processes of other backends compile as users do.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

LONGEST = (  # files that take a minute and more come first, so that no process is left alone with one at the end
    "test_killed", "test_cluster", "test_training_model", "test_export_command", "test_examples", "test_exact",
    "test_stock_fit", "test_accelerator", "test_train_speed", "test_run", "test_divergence", "test_export",
    "test_welcome", "test_two_replicas", "test_fit", "test_wheel", "test_backends", "test_stock_fit_backends",
)  # fmt: skip
SLOW = {
    "finished",
    "continued",
    "both",
    "served",
    "replicated",
    "browser",
}  # fixtures that train, export or start a browser, and the tests that use them


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The configuration file, the run folder, and the ended process of a first training (support/runs.py)."""
    from tests.support.processes import python
    from tests.support.runs import write_config

    config = write_config(tmp_path_factory.mktemp("finished"))
    process = python("-m", "train", config)
    assert process.returncode == 0, process.stderr[-3000:]
    return config, config.with_suffix(""), process


@pytest.fixture(scope="module")
def random_folder(tmp_path_factory):
    """A run folder with random weights (support/runs.py)."""
    from tests.support.runs import random_run

    return random_run(tmp_path_factory.mktemp("runs") / "random")


@pytest.fixture(scope="module")
def pair(random_folder):
    """The Transformer and the Tokenizer of `random_folder`."""
    from keras_transformer.saved_run import load_run

    return load_run(random_folder)


@pytest.fixture
def bfloat16_by_default():
    """Keras as somebody has it who set the type of its variables and computations for all that follows."""
    import keras

    before = keras.config.floatx(), keras.config.dtype_policy()
    keras.config.set_floatx("bfloat16")
    keras.config.set_dtype_policy("bfloat16")
    yield
    keras.config.set_floatx(before[0])
    keras.config.set_dtype_policy(before[1])


@pytest.fixture(scope="module")
def browser():
    """A browser (support/browser.py)."""
    from tests.support.browser import chromium

    with chromium() as browser:
        yield browser


@pytest.fixture
def eager():
    """Runs what `tf.function` holds operation by operation: a search of a few lines ends before its graph is made."""
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path.stem, len(ranks)))  # a stable order
    for item in items:
        if SLOW & set(item.fixturenames):
            item.add_marker(pytest.mark.slow)


MARK_IT = "this test starts a process: mark it with @pytest.mark.slow"


class NoPython(subprocess.Popen):
    """What `subprocess.Popen` is while a test runs that is not marked slow: it refuses to start Python."""

    def __init__(self, args, *rest, **options):
        assert args[0] != sys.executable, MARK_IT
        super().__init__(args, *rest, **options)


def no_start(process):
    raise AssertionError(MARK_IT)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    with pytest.MonkeyPatch.context() as patch:
        if item.get_closest_marker("slow") is None:
            patch.setattr(subprocess, "Popen", NoPython)
            patch.setattr(multiprocessing.process.BaseProcess, "start", no_start)
        return (yield)
