"""A cluster of Spark for tests, and commands that run on it."""

import importlib.util
import pathlib
import shutil
import tempfile
from contextlib import contextmanager

import pytest

from benchmarks.speed.spark_cluster import HERE, SparkCluster
from tests.support.processes import start_python


@contextmanager
def spark_cluster(workers):
    """Within, there is a cluster of so many workers. Skips the test if Spark cannot run here."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("PySpark is not installed: pip install -r requirements-peers.txt")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java: apt-get install openjdk-17-jre-headless")
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")  # each Java lives for seconds
        with SparkCluster(pathlib.Path(folder), workers) as cluster:
            yield cluster


def start_cluster_command(cluster, log, *arguments, **settings):
    """Start `keras-transformer cluster` with these arguments on a cluster; its log goes to a file.

    `settings` are changes of the environment.
    """
    own = ["--master", cluster.url, "--conf", "spark.executor.memory=1g", "--conf", "spark.ui.enabled=false"]
    return start_python("-m", "keras_transformer", "cluster", *arguments, *own, log=log, **(HERE | settings))
