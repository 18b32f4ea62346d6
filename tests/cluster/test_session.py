"""What Spark is told, and what becomes of its failures, without starting it."""

import os
import sys
import threading
import types

import pytest

from cluster.errors import ClusterError
from cluster.session import ALONE, SETTINGS, SUBMITTED, name_and_value, settings_of, told, try_a_worker
from tests.support.local_spark import LocalSpark, Parts


def test_a_setting_has_a_name_of_spark_and_a_value():
    assert name_and_value("spark.a=b=c") == ("spark.a", "b=c")
    for wrong in ("spark.a", "a=b", "=", ""):
        with pytest.raises(ClusterError, match="--conf is .*; it must be NAME=VALUE"):
            name_and_value(wrong)


def test_on_this_machine_alone_nothing_of_spark_can_be_reached_from_elsewhere(monkeypatch):
    monkeypatch.delenv(SUBMITTED, raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", "another")
    for master in (None, "local[3]"):
        settings = settings_of(master)
        assert settings["spark.driver.bindAddress"] == settings["spark.driver.host"] == "127.0.0.1"
        assert settings["spark.ui.enabled"] == "false"
        assert settings["spark.master"] == master or settings["spark.master"].startswith("local[")
        assert os.environ["PYSPARK_PYTHON"] != "another"  # but this Python


def test_a_cluster_and_spark_submit_have_their_own_settings(monkeypatch):
    monkeypatch.delenv(SUBMITTED, raising=False)
    assert settings_of("spark://a:7077") == {"spark.master": "spark://a:7077"}
    monkeypatch.setenv(SUBMITTED, "1")
    assert settings_of(None) == {}
    assert settings_of("yarn") == {"spark.master": "yarn"}


class Py4JError(Exception):
    """In place of that of py4j."""


class PySparkException(Exception):
    """In place of that of PySpark."""


@pytest.fixture(autouse=True)
def modules(monkeypatch):
    """In place of PySpark, which is not needed for these laws."""
    for name, module in {
        "py4j.protocol": types.SimpleNamespace(Py4JError=Py4JError),
        "pyspark.errors": types.SimpleNamespace(PySparkException=PySparkException),
    }.items():
        monkeypatch.setitem(sys.modules, name.partition(".")[0], types.ModuleType(name.partition(".")[0]))
        monkeypatch.setitem(sys.modules, name, module)


def test_what_everybody_may_rely_on_is_set():
    assert SETTINGS["spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version"] == "2"  # parts stay where they are
    assert SETTINGS["spark.ui.showConsoleProgress"] == "false" and SETTINGS["spark.app.name"] == "keras-transformer"
    assert SETTINGS["spark.executorEnv.TF_CPP_MIN_LOG_LEVEL"] == "3" and "spark.master" not in SETTINGS | ALONE


@pytest.mark.parametrize("kind", [Py4JError, PySparkException])
@pytest.mark.parametrize(
    ("message", "printed", "sentence"),
    [
        ("IOException: No space", "a trace", "^Spark gave up: IOException: No space. All that Spark printed is in"),
        ("IOException: No space", "", "^Spark gave up: IOException: No space.$"),
        ("cluster.errors.ClusterError: No signature.", "a trace", "^No signature.$"),
    ],
)
def test_a_failure_of_spark_is_one_sentence_and_what_it_printed_stays_if_it_is_named(
    kind, message, printed, sentence, tmp_path
):
    log_file = tmp_path / "spark.log"
    log_file.write_text(printed)
    with pytest.raises(ClusterError, match=sentence), told(log_file, threading.Event()):
        raise kind(message)
    assert log_file.exists() is ("is in" in sentence)


@pytest.mark.parametrize(("is_stopped", "error"), [(True, Py4JError), (True, ValueError), (False, ValueError)])
def test_what_a_signal_or_somebody_else_raises_is_no_failure_of_spark(is_stopped, error, tmp_path):
    stopped, log_file = threading.Event(), tmp_path / "spark.log"
    log_file.write_text("a trace")
    if is_stopped:
        stopped.set()
    with pytest.raises(error), told(log_file, stopped):
        raise error("x")
    assert not log_file.exists()


@pytest.fixture
def timers(monkeypatch):
    """The timers that were started, and whether each was cancelled; `late` calls what the last one waits for."""
    timers = []

    class Timer:
        def __init__(self, seconds, function):
            self.seconds, self.function, self.is_started, self.is_cancelled = seconds, function, False, False
            timers.append(self)

        def start(self):
            self.is_started = True

        def cancel(self):
            self.is_cancelled = True

    monkeypatch.setattr(threading, "Timer", Timer)
    return timers


def test_the_answer_of_a_worker_is_that_of_the_task(timers):
    assert try_a_worker(LocalSpark(), lambda number: number + 5) == 5
    [timer] = timers
    assert (timer.seconds, timer.is_started, timer.is_cancelled) == (120, True, True)


@pytest.mark.parametrize(("stages", "is_late"), [([], True), ([None], True), ([0], True), ([0, 1], False)])
def test_a_task_that_nobody_takes_is_given_up_and_one_that_a_worker_has_taken_is_not(stages, is_late, timers):
    context = LocalSpark(stages=[n if n is None else types.SimpleNamespace(numActiveTasks=n) for n in stages])

    class Waiting(Parts):
        def collect(self):
            timers[-1].function()
            raise Py4JError("cancelled")

    context.parallelize = lambda items, parts: types.SimpleNamespace(map=lambda task: Waiting([]))
    with pytest.raises(ClusterError if is_late else Py4JError, match="within 120 seconds" if is_late else "cancelled"):
        try_a_worker(context, None)
    assert (("cancelAllJobs",) in context.asked) is is_late and timers[-1].is_cancelled
