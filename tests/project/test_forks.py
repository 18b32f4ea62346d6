"""A fork is what a new process is: arguments, folder, environment, streams, exit codes, signals, its end.

test_killed.py compares the weights of a training in forks with those of one in a new process.
"""

import signal

import pytest

from tests.support.places import ROOT
from tests.support.processes import end, fork_python, python, start_fork, wait_until

pytestmark = pytest.mark.slow


def test_a_fork_has_the_arguments_folder_environment_and_input_that_it_was_given():
    script = "import os, sys; print(__name__, sys.argv, os.getcwd(), os.environ['NAME'], ascii(sys.stdin.read()))"
    process = fork_python("-c", script, 1, "b c", stdin="two\nlinés", NAME="here")
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout == f"__main__ ['-c', '1', 'b c'] {ROOT} here 'two\\nlin\\xe9s'\n"


@pytest.mark.parametrize("ending", ["pass", "sys.exit(75)", "sys.exit('a sentence')", "1 // 0", "os._exit(3)"])
def test_a_fork_prints_and_ends_as_a_new_process_does(ending):
    script = f"import atexit, os, sys\natexit.register(print, 'at exit')\nprint('printed', flush=True)\n{ending}"
    found, expected = fork_python("-c", script), python("-c", script)
    assert (found.returncode, found.stdout) == (expected.returncode, expected.stdout)
    assert found.stderr.splitlines()[-1:] == expected.stderr.splitlines()[-1:]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_ends_a_fork(tmp_path, number):
    log = tmp_path / "log"
    process = start_fork("-c", "import time; print('begun', flush=True); time.sleep(60)", log=log)
    wait_until(lambda: log.read_text(encoding="utf-8") == "begun\n", [process])
    process.send_signal(number)
    assert end([process]) == [-number]
