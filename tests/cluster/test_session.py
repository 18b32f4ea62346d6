"""What Spark is told, and what becomes of its failures, without starting it."""

import contextlib
import logging
import os
import pathlib
import sys
import threading
import types

import psutil
import pytest

from cluster import session
from cluster.errors import ClusterError
from cluster.session import ALONE, SETTINGS, SUBMITTED, name_and_value, settings_of, spark, started, told, try_a_worker
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


class Context(LocalSpark):
    """A SparkContext that keeps, with what it is told, the names of the files that it is sent."""

    def __init__(self):
        super().__init__()
        self._jsc = types.SimpleNamespace(hadoopConfiguration=lambda: types.SimpleNamespace(set=self.setHadoop))


@pytest.fixture
def begun(monkeypatch):
    """A function that runs something in `spark(...)`, and returns its settings, what was checked, and its context."""

    def begin(master, settings, export, within=lambda: None, error=None):
        context, chosen, checked = Context(), [], []
        monkeypatch.setattr(session, "check_java", lambda: checked.append("java"))
        monkeypatch.setattr(session, "check_master", checked.append)
        monkeypatch.setattr(session, "started", lambda *given: chosen.extend(given) or context)
        monkeypatch.setattr(session, "zip_project", lambda path: path)
        monkeypatch.setattr(session, "zip_export", lambda export, path: path if export == "export" else None)
        with pytest.raises(error) if error else contextlib.nullcontext():
            with spark(master, settings, export, threading.Event()) as given:
                assert given is context and chosen[1].exists()
                within()
        return chosen, checked, context

    return begin


@pytest.mark.parametrize("export", [None, "export"])
@pytest.mark.parametrize("master", [None, "spark://a:7077"])
def test_the_workers_get_the_project_and_the_export_and_lines_end_in_line_feeds_alone(
    master, export, begun, monkeypatch
):
    monkeypatch.delenv(SUBMITTED, raising=False)
    (chosen, log_file), checked, context = begun(master, ["spark.a=b", "spark.app.name=mine"], export)
    assert chosen == SETTINGS | settings_of(master) | {"spark.a": "b", "spark.app.name": "mine"}
    assert checked == ["java", *([master] if master else [])] and not log_file.exists()
    told = [
        (name, *(pathlib.Path(each).name for each in given)) for name, *given in context.asked if name != "setHadoop"
    ]
    archive = [("addArchive", "export.zip#export")] if export else []
    assert told == [("addPyFile", "keras_transformer_project.zip"), *archive, ("stop",)]
    assert context.asked[0] == ("setHadoop", "textinputformat.record.delimiter", "\n")
    assert not pathlib.Path(context.asked[1][1]).parent.exists() and logging.getLogger("py4j").level == logging.WARNING


def test_spark_is_stopped_whatever_ends_the_work(begun):
    def fail():
        raise ZeroDivisionError

    before = psutil.Process().num_fds()
    (_, log_file), _, context = begun(None, [], None, fail, ZeroDivisionError)
    assert context.asked[-1] == ("stop",) and not log_file.exists() and psutil.Process().num_fds() == before


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


@pytest.mark.parametrize("is_submitted", [False, True])
def test_java_starts_with_the_settings_and_prints_into_the_file_unless_spark_submit_has_started_it(
    is_submitted, tmp_path, monkeypatch
):
    launched, made = [], []

    class SparkConf:
        def __init__(self, loadDefaults=True):  # noqa: N803  (the name in PySpark)
            self.has_defaults = loadDefaults

        def setAll(self, pairs):
            return self.has_defaults, dict(pairs)

    class SparkContext:
        @classmethod
        def _ensure_initialized(cls, gateway):
            made.append(gateway)

        def __init__(self, conf, gateway):
            self.conf, self.gateway = conf, gateway

    def launch_gateway(conf, where):
        launched.append(conf)
        where["stdout"].write("out")
        where["stderr"].write("err")
        return "gateway"

    monkeypatch.setitem(sys.modules, "pyspark", types.SimpleNamespace(SparkConf=SparkConf, SparkContext=SparkContext))
    monkeypatch.setitem(sys.modules, "pyspark.java_gateway", types.SimpleNamespace(launch_gateway=launch_gateway))
    monkeypatch.setenv(SUBMITTED, "1") if is_submitted else monkeypatch.delenv(SUBMITTED, raising=False)
    context = started({"spark.a": "b"}, tmp_path / "log")
    gateway = None if is_submitted else "gateway"
    assert (context.conf, context.gateway, made) == ((True, {"spark.a": "b"}), gateway, [gateway])
    assert launched == ([] if is_submitted else [(False, {"spark.a": "b"})])
    assert is_submitted or (tmp_path / "log").read_text() == "outerr"


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
