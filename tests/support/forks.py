"""Forks of a process that has imported TensorFlow and Keras: they start at once, where a new process imports for 6 s.

multiprocessing's fork server imports the packages of PRELOADED, which belong to others; a fork imports this project's
modules itself. No TensorFlow operation runs in the server, so no thread of TensorFlow is lost in a fork.

What differs from a new process: the hash seed of strings is that of every other fork, environment variables that are
read during an import come too late, and a KeyboardInterrupt ends with code 1. Tests of starting start a new process.
"""

import atexit
import multiprocessing
import os
import pathlib
import runpy
import signal
import subprocess
import sys
import threading
import types

import numpy as np

PRELOADED = ("tensorflow", "keras", "tensorflow_text", "sentencepiece", "sacrebleu", "typer", "pydantic", "h5py")
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload([*PRELOADED, "tests.support.freeze"])


class Fork:
    """Python with `arguments`, started as a fork: what tests need of subprocess.Popen.

    `stdio` are the files of stdin, stdout and stderr; `environment` is all of it.
    """

    def __init__(self, arguments, folder, environment, stdio):
        self.args, self.returncode = [sys.executable, *arguments], None
        self._process = SERVER.Process(target=_Main(arguments, folder, environment, stdio))
        self._process.start()
        self.pid = self._process.pid

    def poll(self):
        self.returncode = self._process.exitcode
        return self.returncode

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self.poll() is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


class _Main:
    """What a fork does: become `python ARGUMENTS` in `folder`."""

    def __init__(self, *settings):
        self.settings = settings

    def __getstate__(self):  # called while the fork starts, when files can be passed on
        arguments, folder, environment, stdio = self.settings
        return arguments, folder, environment, [multiprocessing.reduction.DupFd(file.fileno()) for file in stdio]

    def __setstate__(self, settings):
        self.settings = settings

    def __call__(self):
        arguments, folder, environment, stdio = self.settings
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        for number, file in enumerate(stdio):
            os.dup2(file.detach(), number)
        sys.stdin, sys.stdout = open(0, encoding="utf-8"), open(1, "w", encoding="utf-8")
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)
        np.random.seed()  # Python's own random numbers are seeded anew in every fork
        try:
            run(*arguments)
        except SystemExit:
            raise
        except BaseException:
            sys.excepthook(*sys.exc_info())
            sys.exit(1)
        finally:
            threading._shutdown()  # waits for threads as Python does before it exits; multiprocessing runs no atexit
            atexit._run_exitfuncs()


def run(first, *rest):
    """Do what `python FIRST REST` does: `-m MODULE`, `-c CODE` or a script."""
    if first == "-c":
        code, *rest = rest
        sys.argv = ["-c", *rest]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(code, "<string>", "exec"), main.__dict__)
    elif first == "-m":
        sys.argv = list(rest)
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [first, *rest]
        sys.path.insert(0, str(pathlib.Path(first).parent))
        runpy.run_path(first, run_name="__main__")
