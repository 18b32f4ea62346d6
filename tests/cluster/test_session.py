"""What Spark is told, and what becomes of its failures, without starting it."""

import os
import sys
import threading
import types

import pytest

from cluster.errors import ClusterError
from cluster.session import SUBMITTED, name_and_value, settings_of, told


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
