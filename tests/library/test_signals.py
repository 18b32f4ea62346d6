"""Ctrl-C ends every command at once, whatever it is doing; an unfinished export is removed first."""

import os
import signal
import sys

import pytest

from keras_transformer.commands.signals import end_on_closed_output, end_on_interrupt, end_on_signals, signals_raise
from tests.support.processes import HEARS_CTRL_C, python, start_python
from tests.support.runs import write_config

# Runs a module as `python -m` does and interrupts it when it imports something: at once, or inside a callback of the
# garbage collector, where Python would lose a KeyboardInterrupt. A background job ignores SIGINT, so it is set here.
INTERRUPTED = """
import gc, os, runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
_, module, moment, place, *arguments = sys.argv

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            sys.meta_path.remove(self)
            gc.callbacks.append(lambda *_: os.kill(os.getpid(), signal.SIGINT))
            if place == "collection":
                gc.collect()
            else:
                gc.callbacks.pop()()
            del gc.callbacks[:]

sys.meta_path.insert(0, Finder())
sys.argv = [module, *arguments]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
COMMANDS = {
    "train": ["CONFIG", "--dry-run"],
    "train.evaluate": ["FOLDER"],
    "keras_transformer": ["translate", "FOLDER"],
    "export": ["FOLDER", "--to", "FOLDER", "--no-check"],
}


@pytest.mark.slow
@pytest.mark.parametrize("place", ["import", "collection"])
@pytest.mark.parametrize("moment", ["typer", "tensorflow"])
@pytest.mark.parametrize("module", COMMANDS)
def test_ctrl_c_ends_a_command_that_is_starting(tmp_path, module, moment, place):
    names = {"CONFIG": write_config(tmp_path), "FOLDER": tmp_path}
    arguments = [names.get(word, word) for word in COMMANDS[module]]
    process = python("-c", INTERRUPTED, module, moment, place, *arguments)
    assert process.returncode == -signal.SIGINT, process.stderr
    assert "Traceback" not in process.stderr


FIRST_PROCESS = """
import os, time
os.getpid = lambda: 1
from keras_transformer.commands.signals import end_on_interrupt
end_on_interrupt()
print(flush=True)
time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_container_that_is_stopped_while_it_starts_ends_at_once(number):
    """Its first process has a handler, without which Linux would ignore the signal."""
    with start_python("-c", HEARS_CTRL_C, "-c", FIRST_PROCESS) as process:
        process.stdout.readline()
        process.send_signal(number)
        assert process.wait(timeout=30) == 128 + number, process.stderr.read()


@pytest.fixture
def handlers():
    """Bring back the handlers that a test changes."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)}
    yield before
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_reader_that_closes_the_pipe_ends_a_command_without_a_traceback(handlers):
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as Python starts
    signal.signal(signal.SIGINT, signal.default_int_handler)
    end_on_signals()
    assert signal.getsignal(signal.SIGPIPE) is signal.getsignal(signal.SIGINT) is signal.SIG_DFL


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_process_of_a_container_has_handlers_that_end_it_with_the_code_of_a_shell(
    handlers, monkeypatch, number, code
):
    monkeypatch.setattr(os, "getpid", lambda: 1)
    monkeypatch.setattr(os, "_exit", sys.exit)  # which a test outlives
    signal.signal(signal.SIGINT, signal.default_int_handler)
    end_on_interrupt()
    with pytest.raises(SystemExit) as end:
        signal.raise_signal(number)
    assert end.value.code == code


def test_an_interrupt_that_the_parent_ignores_stays_ignored(handlers):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_on_interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    with signals_raise():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_raise_and_the_handlers_come_back(handlers, number, code):
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    cleaned = []
    with pytest.raises(SystemExit) as end, signals_raise():
        try:
            os.kill(os.getpid(), number)
        finally:
            cleaned.append(number)
    assert end.value.code == code and cleaned == [number]
    assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is handlers[signal.SIGTERM]


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="Windows has no such signal")
def test_a_pipe_that_closes_early_ends_a_command_with_sockets_too(monkeypatch):
    raised, before = [], signal.getsignal(signal.SIGPIPE)
    monkeypatch.setattr(signal, "raise_signal", lambda number: raised.append((number, signal.getsignal(number))))
    try:
        with end_on_closed_output():
            raise BrokenPipeError
    finally:
        signal.signal(signal.SIGPIPE, before)
    assert raised == [(signal.SIGPIPE, signal.SIG_DFL)]
