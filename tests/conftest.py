"""Settings that must stand before the first test file imports Keras or TensorFlow, and the tiers of tests."""

import gc
import json
import multiprocessing
import os
import subprocess
import sys

import pytest

from tests.support.longest import Longest, file_of, longest_files
from tests.support.processes import XLA_FLAGS

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("XLA_FLAGS", XLA_FLAGS)  # test_killed.py and test_stock_fit_backends.py compile as users do

# fixtures whose tests belong to a tier: those that train or export, the browser, and a cluster of Spark
SLOW = {"finished", "continued", "both", "served", "replicated"}
RELEASE = {"browser", "cluster"}


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The configuration file, the run folder, and the ended process of a first training (support/runs.py).

    One process trains it for all. Tests that change it take a copy.
    """
    from tests.support.once import made_once
    from tests.support.runs import first_training

    folder = made_once(tmp_path_factory, "finished", first_training)
    outcome = json.loads((folder / "process.json").read_text(encoding="utf-8"))
    return folder / "run.toml", folder / "run", subprocess.CompletedProcess([], **outcome)


@pytest.fixture(scope="module")
def random_folder(tmp_path_factory):
    """A run folder with random weights (support/runs.py)."""
    from tests.support.runs import random_run

    return random_run(tmp_path_factory.mktemp("runs") / "random")


@pytest.fixture(scope="module")
def pair(random_folder):
    """The Transformer and the Tokenizer of `random_folder`."""
    from keras_transformer.runs.saved_run import load_run

    return load_run(random_folder)


@pytest.fixture(scope="session")
def whole_version(tmp_path_factory):
    """A version with every signature, of random weights in 2 and 3 layers. One process writes it for all."""
    from tests.support.exports import write_version
    from tests.support.once import made_once
    from tests.support.runs import random_run

    def write(folder):
        run = random_run(folder / "run", encoder_layers=2, decoder_layers=3)
        write_version(run, folder / "1", max_source_tokens=60, names=())

    return made_once(tmp_path_factory, "whole_version", write) / "1"


@pytest.fixture(scope="session")
def echo_folder(tmp_path_factory):
    """The folder of a model with one version, which answers what it was asked (support/echo.py). Tests only read it."""
    from tests.support.echo import write_echo

    return write_echo(tmp_path_factory.mktemp("served") / "echo" / "1").parent


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """An authority that signs certificates (support/certificates.py)."""
    from tests.support.certificates import Authority

    return Authority(tmp_path_factory.mktemp("authority"), "our-authority")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """An authority that nobody trusts who trusts `authority`."""
    from tests.support.certificates import Authority

    return Authority(tmp_path_factory.mktemp("stranger"), "another-authority")


@pytest.fixture
def brief_latencies(monkeypatch):
    """A certificate measures the latency of each length for a moment, not for seconds."""
    monkeypatch.setattr("export.certificate.certificate.MOST_SECONDS", 0.1)


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


@pytest.fixture(scope="module")
def graphs_as_written():
    """Graphs of this process, and of what it exports, run without Grappler.

    It rewrites a graph before its first run, which takes longer than all else of a search of a few lines.
    """
    import tensorflow as tf

    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    yield
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False})


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """A quarter of the collection went into looking for garbage among a million objects that stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    seconds = longest_files()
    items.sort(key=lambda item: -seconds.get(file_of(item.nodeid), 0))  # a stable order
    addresses = [item.nodeid for item in items if " object at 0x" in item.nodeid]
    if addresses:
        raise pytest.UsageError(f"give these cases ids: another process would know them by others: {addresses}")
    for item in items:
        if SLOW & set(item.fixturenames):
            item.add_marker(pytest.mark.slow)
        if RELEASE & set(item.fixturenames):
            item.add_marker(pytest.mark.release)


TIERS = ("slow", "nightly", "release")  # of tests that may start processes
MARK_IT = "this test starts a process: mark it with @pytest.mark.slow or, if it needs other programs, release"


class NoPython(subprocess.Popen):
    """What `subprocess.Popen` is while a test runs that has no tier: it refuses to start Python."""

    def __init__(self, args, *rest, **options):
        assert args[0] != sys.executable, MARK_IT
        super().__init__(args, *rest, **options)


def no_start(process):
    raise AssertionError(MARK_IT)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    with pytest.MonkeyPatch.context() as patch:
        if not any(map(item.get_closest_marker, TIERS)):
            patch.setattr(subprocess, "Popen", NoPython)
            patch.setattr(multiprocessing.process.BaseProcess, "start", no_start)
        return (yield)


def pytest_addoption(parser):
    parser.addoption(
        "--keep-longest", action="store_true", help="write which files of tests take longest, to begin with them"
    )


def pytest_configure(config):
    if not hasattr(config, "workerinput"):  # the process that the others report to
        config.pluginmanager.register(Longest(is_kept=config.getoption("keep_longest")))
