"""What is looked at before Spark starts: Java, and whether a master answers."""

import os
import pathlib
import re
import shutil
import socket
import subprocess

from .errors import ClusterError

OLDEST_JAVA = 17  # of Spark 4
PATIENCE = 5  # seconds until a master counts as silent
INSTALL = "Install Java 17 or 21, for example `apt-get install openjdk-17-jre-headless`, or let JAVA_HOME name it."


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
