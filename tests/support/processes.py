"""Several workers on this machine's loopback: real processes under TF_CONFIG."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[2]
PATIENCE = 900  # seconds; on a machine that does other work, starting and compiling take minutes


def free_ports(count):
    with contextlib.ExitStack() as sockets:
        held = [sockets.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [server.getsockname()[1] for server in held]


def tf_config(ports, index):
    addresses = [f"127.0.0.1:{port}" for port in ports]
    return json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}})


def python(*arguments, log, **environment):
    """Start Python with the project and its tests on the path; stdout and stderr go to the file `log`."""
    settings = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]), "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment = os.environ | settings | environment
    with open(log, "w", encoding="utf-8") as file:
        return subprocess.Popen([sys.executable, *map(str, arguments)], env=environment, stdout=file, stderr=file)


def start_workers(arguments, logs):
    """Start a worker for each entry of `logs`, a path; `arguments(index)` are those of its Python."""
    ports = free_ports(len(logs))
    return [python(*arguments(index), log=log, TF_CONFIG=tf_config(ports, index)) for index, log in enumerate(logs)]


def end(processes):
    """Wait until all have ended; returns their exit codes. What does not end is killed, and fails."""
    try:
        return [process.wait(timeout=PATIENCE) for process in processes]
    finally:
        for process in processes:
            process.kill()


def wait_until(is_so, processes):
    """Until `is_so()`; an AssertionError if it does not come about, or a process ends before."""
    until = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < until and all(process.poll() is None for process in processes)
        time.sleep(0.01)
