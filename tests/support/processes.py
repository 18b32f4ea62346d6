"""Python processes that tests start: one that ends, one that runs beside the test, several workers as one cluster."""

import contextlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import time

import pytest

from tests.support.forks import Fork
from tests.support.places import ROOT

# Tests compile much and run little: without optimization and the newer emitter of fusions, compiling takes half the
# time with TensorFlow, and a third with JAX, of which almost every operation is compiled and runs once.
XLA_FLAGS = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
PATIENCE = 900  # seconds; on a machine that does other work, starting and compiling take minutes


def start_python(*arguments, log=None, stdin=None, text=True, **environment):
    """Start Python in ROOT. stdout and stderr are pipes, or go to the file `log`; `environment` adds variables."""
    settings = dict(cwd=ROOT, env=environment_with(environment), stdin=stdin, text=text)
    command = [sys.executable, *map(str, arguments)]
    if log is None:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **settings)
    with open(log, "a", encoding="utf-8") as file:
        return subprocess.Popen(command, stdout=file, stderr=file, **settings)


def refusing(folder, *names):
    """Return a PYTHONPATH under which no process can import these modules; it needs an empty folder."""
    folder.mkdir()
    for name in names:
        (folder / f"{name}.py").write_text("raise ImportError(f'{__name__} is refused')", encoding="utf-8")
    return str(folder)  # without ROOT, which Python finds as the folder where it starts


HEARS_CTRL_C = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""  # a script that starts Python with its arguments: what a background job starts would ignore Ctrl-C


def python(*arguments, stdin="", **environment):
    """Run Python in ROOT until it ends. Returns a CompletedProcess, whose output is str or bytes as `stdin` is."""
    text = isinstance(stdin, str)
    process = start_python(*arguments, stdin=subprocess.PIPE, text=text, **environment)
    try:
        stdout, stderr = process.communicate(stdin, timeout=PATIENCE)
    finally:
        process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def environment_with(changes):
    return os.environ | {"PYTHONPATH": str(ROOT)} | changes


# the same without the time of importing TensorFlow: see forks.py for what differs


def start_fork(*arguments, log, **environment):
    """`start_python` as a fork."""
    with open(os.devnull) as empty, open(log, "a", encoding="utf-8") as file:
        return Fork(list(map(str, arguments)), ROOT, environment_with(environment), (empty, file, file))


def fork_python(*arguments, stdin="", **environment):
    """`python` as a fork."""
    with contextlib.ExitStack() as files:
        given, *printed = stdio = [files.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        given.write(stdin.encode("utf-8"))
        given.seek(0)
        process = Fork(list(map(str, arguments)), ROOT, environment_with(environment), stdio)
        end([process])
        for file in printed:
            file.seek(0)
        return subprocess.CompletedProcess(
            process.args, process.returncode, *(file.read().decode("utf-8") for file in printed)
        )


def end(processes):
    """Wait until all have ended. Returns their exit codes; a process that does not end is killed, and raises."""
    try:
        return [process.wait(timeout=PATIENCE) for process in processes]
    finally:
        for process in processes:
            process.kill()


def wait_until(is_so, processes=(), pause=0.001):
    """Return as soon as `is_so()`; raise an AssertionError if it never is or if a process ends before."""
    until = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < until and all(process.poll() is None for process in processes)
        time.sleep(pause)


# several workers


def free_ports(count):
    with contextlib.ExitStack() as sockets:
        held = [sockets.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [server.getsockname()[1] for server in held]


def tf_config(ports, index):
    addresses = [f"127.0.0.1:{port}" for port in ports]
    return json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}})


def start_workers(arguments, logs):
    """Start one worker per entry of `logs`, a path; `arguments(index)` are the arguments of its Python."""
    ports = free_ports(len(logs))
    return [
        start_fork(*arguments(index), log=log, TF_CPP_MIN_LOG_LEVEL="3", TF_CONFIG=tf_config(ports, index))
        for index, log in enumerate(logs)
    ]


# another backend


def run_on_backend(backend, script, path, **environment):
    """Run `script`, which writes `path`, its argument, under another Keras backend. Returns what it prints."""
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed: pip install -r requirements-peers.txt")
    environment = {"KERAS_BACKEND": backend, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": XLA_FLAGS} | environment
    process = python("-c", script, path, **environment)
    assert process.returncode == 0, process.stderr[-2000:]
    return process.stdout


def run_without_tensorflow(backend, script, path):
    """`run_on_backend` for a script that prints last whether TensorFlow was imported, which must be False."""
    assert run_on_backend(backend, script, path).split()[-1] == "False"
