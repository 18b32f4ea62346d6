"""A standalone cluster of Spark as processes of this machine: a master, and workers of one core each."""

import importlib.util
import os
import pathlib
import socket
import subprocess
import sys
import time
from collections.abc import Sequence

from benchmarks.errors import BenchmarkError

PATIENCE = 300  # seconds until a process must be ready
HERE = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}  # the environment of every process

ADDRESS = ["--host", "127.0.0.1", "--webui-port"]


class SparkCluster:
    """A master and its workers, from PySpark's own programs. As a context, it ends them.

    folder: gets the log of each, and what the workers write for themselves. url: of the master.
    Raises BenchmarkError if a process does not get ready.
    """

    def __init__(self, folder: pathlib.Path, workers: int):
        self.folder, self.url = folder, f"spark://127.0.0.1:{free_port()}"
        self.processes: list[subprocess.Popen] = []
        port = self.url.rpartition(":")[2]
        try:
            self._start("master", ["master.Master", *ADDRESS, free_port(), "--port", port], "elected leader")
            for number in range(workers):
                self.start_worker(f"worker{number}")
        except BaseException:  # any: no process is to be left; it is raised again
            self.end()
            raise

    def __enter__(self) -> "SparkCluster":
        return self

    def __exit__(self, *_) -> None:
        self.end()

    def start_worker(self, name: str) -> None:
        """Start a further worker, with a log and a folder of this name."""
        options = ["worker.Worker", *ADDRESS, free_port(), "-c", 1, "-m", "2g", "-d", self.folder / f"{name}.work"]
        self._start(name, [*options, self.url], "Successfully registered with master")

    def _start(self, name: str, arguments: Sequence[object], ready: str) -> None:
        """Start a program of Spark and wait until its log says that it is ready."""
        home = pathlib.Path(importlib.util.find_spec("pyspark").origin).parent
        module, *rest = map(str, arguments)
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{module}", *rest]
        path = self.folder / f"{name}.log"
        with path.open("w") as log:
            environment = os.environ | HERE | {"SPARK_HOME": str(home)}
            self.processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=self.folder))
        until = time.monotonic() + PATIENCE
        while ready not in path.read_text(encoding="utf-8"):
            if time.monotonic() > until or self.processes[-1].poll() is not None:
                raise BenchmarkError(f"Spark's {name} is not ready: {path.read_text(encoding='utf-8')[-500:]}")
            time.sleep(0.1)

    def end(self) -> None:
        """End the workers, then the master."""
        for process in reversed(self.processes):
            process.terminate()
            process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
