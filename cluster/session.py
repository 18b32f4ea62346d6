"""Spark for as long as a command runs: its settings, what it sends to the workers, and a first task on one of them."""

import contextlib
import logging
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from keras_transformer.ground.machine import processor_cores

from .engines import EXPORT
from .errors import ClusterError, cause_of, sentence_of_worker
from .sent import zip_export, zip_project

OLDEST_JAVA = 17  # of Spark 4
PATIENCE = 5  # seconds until a master counts as silent
INSTALL = "Install Java 17 or 21, for example `apt-get install openjdk-17-jre-headless`, or let JAVA_HOME name it."

ATTEMPTS = 4  # at a part, as Spark has it on a cluster
SECONDS_TO_START = 120  # for the first task
SUBMITTED = "PYSPARK_GATEWAY_PORT"  # an environment variable that spark-submit sets
SETTINGS = {
    "spark.app.name": "keras-transformer",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",  # a part is in its place once it is whole
    "spark.ui.showConsoleProgress": "false",  # the command logs its own
    "spark.executorEnv.TF_CPP_MIN_LOG_LEVEL": "3",
}
ALONE = {  # on this machine alone: nothing of Spark can be reached from elsewhere
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}


@contextlib.contextmanager
def spark(
    master: str | None, settings: Sequence[str], export: pathlib.Path | None, stopped: threading.Event
) -> Iterator[Any]:
    """Within, there is a SparkContext whose workers have this project and the export, if there is one.

    master: its URL; None is what spark-submit says, else the cores of this machine. settings: further ones of Spark,
    each NAME=VALUE, which win. stopped: is set if a signal ends the work, which is no failure of Spark. What Java
    prints goes into a file, which stays and is named if Spark fails. Raises ClusterError if there is no Java, if no
    master answers, and if Spark fails.
    """
    logging.getLogger("py4j").setLevel(logging.WARNING)
    chosen = SETTINGS | settings_of(master) | dict(name_and_value(setting) for setting in settings)
    check_java()
    if master is not None:
        check_master(master)
    descriptor, name = tempfile.mkstemp(prefix="keras-transformer-spark-", suffix=".log")
    os.close(descriptor)
    log_file = pathlib.Path(name)
    with tempfile.TemporaryDirectory(prefix="keras-transformer-") as folder, told(log_file, stopped):
        context = started(chosen, log_file)
        try:
            context._jsc.hadoopConfiguration().set("textinputformat.record.delimiter", "\n")  # "\r" is no end of a line
            context.addPyFile(str(zip_project(pathlib.Path(folder) / "keras_transformer_project.zip")))
            if export is not None:
                context.addArchive(str(zip_export(export, pathlib.Path(folder) / "export.zip")) + f"#{EXPORT}")
            yield context
        finally:
            context.stop()


def settings_of(master: str | None) -> dict[str, str]:
    """Return the settings of Spark that name its master. Python on the workers is this one if they are here too."""
    if master is None and SUBMITTED in os.environ:
        return {}
    if master is None or master.startswith("local"):
        os.environ["PYSPARK_PYTHON"] = sys.executable
        return ALONE | {"spark.master": master or f"local[{processor_cores()},{ATTEMPTS}]"}
    return {"spark.master": master}


def name_and_value(setting: str) -> tuple[str, str]:
    """Return the two sides of NAME=VALUE. Raises ClusterError if this is no setting of Spark."""
    name, sign, value = setting.partition("=")
    if not sign or not name.startswith("spark."):
        raise ClusterError(f"--conf is {setting!r}; it must be NAME=VALUE, such as spark.executor.memory=4g.")
    return name, value


def started(settings: dict[str, str], log_file: pathlib.Path) -> Any:
    """Return a new SparkContext; what Java prints goes into a file."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    gateway = None
    if SUBMITTED not in os.environ:
        launched = SparkConf(loadDefaults=False).setAll(list(settings.items()))
        with log_file.open("w") as file:
            gateway = launch_gateway(launched, {"stdout": file, "stderr": file})
    SparkContext._ensure_initialized(gateway=gateway)
    return SparkContext(conf=SparkConf().setAll(list(settings.items())), gateway=gateway)


@contextlib.contextmanager
def told(log_file: pathlib.Path, stopped: threading.Event) -> Iterator[None]:
    """Within, a failure of Spark is raised as ClusterError, which names the cause and the file, which then stays."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    is_kept = False
    try:
        yield
    except (Py4JError, PySparkException) as error:
        if stopped.is_set():
            raise
        cause = cause_of(error)
        if sentence := sentence_of_worker(cause):
            raise ClusterError(sentence) from None
        is_kept = log_file.stat().st_size > 0  # under spark-submit, Java prints elsewhere
        where = f" All that Spark printed is in {log_file}." if is_kept else ""
        raise ClusterError(f"Spark gave up: {cause}{where}") from None
    finally:
        if not is_kept:
            log_file.unlink(missing_ok=True)


def try_a_worker(context: Any, task: Callable[[int], Any]) -> Any:
    """Return what a task returns that one worker computes. Raises ClusterError if none takes it."""
    late = threading.Event()

    def give_up() -> None:
        tracker = context.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        if not any(stage.numActiveTasks for stage in stages if stage):  # who has taken it may load for minutes
            late.set()
            context.cancelAllJobs()

    timer = threading.Timer(SECONDS_TO_START, give_up)
    timer.start()
    try:
        return context.parallelize([0], 1).map(task).collect()[0]
    except Exception:  # any of Spark's; if it is not of `give_up`, it is raised again
        if late.is_set():
            raise ClusterError(
                f"No worker took a task within {SECONDS_TO_START} seconds: the cluster has none, or none with as many "
                "free cores and as much memory as an executor asks for (--conf spark.executor.memory=...)."
            ) from None
        raise
    finally:
        timer.cancel()


def check_java() -> None:
    """Raises ClusterError if there is no Java, or one that is too old for Spark."""
    home = os.environ.get("JAVA_HOME")
    program = str(pathlib.Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None:
        raise ClusterError(f"Spark needs Java, which is not installed here. {INSTALL}")
    try:
        answer = subprocess.run([program, "-version"], capture_output=True, text=True).stderr
    except OSError as error:
        raise ClusterError(f"JAVA_HOME is {home}, but {program} does not start: {error.strerror}. {INSTALL}") from None
    version = java_version(answer)
    if version is None or version < OLDEST_JAVA:
        what = "gives no version" if version is None else f"is Java {version}"
        raise ClusterError(f"Spark needs Java {OLDEST_JAVA} or newer, and {program} {what}. {INSTALL}")


def java_version(answer: str) -> int | None:
    """Return the number in what `java -version` prints: 17 of "17.0.15", and 8 of "1.8.0_392"; None without one."""
    number = re.search(r'version "(?:1\.)?(\d+)', answer)
    return int(number[1]) if number else None


def check_master(master: str) -> None:
    """Raises ClusterError if the address of a master is none, or if nothing answers there.

    Of several addresses, as in spark://a:7077,b:7077, one must answer. Other kinds of masters are left to Spark.
    """
    if not re.match(r"(local(\[.*\])?$|spark://|k8s://|yarn$)", master):
        raise ClusterError(
            f"--master is {master}; it must be spark://HOST:PORT, k8s://https://HOST:PORT, yarn or local[CORES]."
        )
    if master.startswith("spark://"):
        addresses = master.removeprefix("spark://").split(",")
        if not any(answers(address) for address in addresses):
            raise ClusterError(
                f"--master is {master}, where nothing answers within {PATIENCE} seconds: is the master running, and "
                "can this machine reach it?"
            )


def answers(address: str) -> bool:
    """Return whether something listens at HOST:PORT. Raises ClusterError if this is no such address."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ClusterError(f"--master has the address {address!r}; it must be HOST:PORT, such as 10.0.0.1:7077.")
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
    except OSError:
        return False
    return True
