"""LiteRT's notice on stderr is left out, and nothing else."""

import os

import pytest

from keras_transformer.lite.notice import NOTICE, without_notice
from tests.support.processes import python


def test_the_notice_alone_is_left_out(capfd):
    with without_notice():
        os.write(2, b"before\n" + NOTICE + b"\n" + NOTICE + b" But not this.\nafter")
    os.write(2, b"\nlater\n")
    assert capfd.readouterr().err == f"before\n{NOTICE.decode()} But not this.\nafter\nlater\n"


def test_what_comes_before_an_exception_is_printed(capfd):
    with pytest.raises(ValueError), without_notice():
        os.write(2, b"the reason\n")
        raise ValueError
    assert capfd.readouterr().err == "the reason\n"


def test_no_file_is_left_open():
    before = os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd") else []
    for _ in range(3):
        with without_notice():
            pass
    assert len(os.listdir("/proc/self/fd") if before else []) == len(before)


WITHOUT_STDERR = """
import os
from keras_transformer.lite.notice import without_notice
os.close(2)
with without_notice():
    os.write(2, b"to nobody\\n")
print("done")
"""


@pytest.mark.slow
def test_a_process_without_stderr_goes_on():
    process = python("-c", WITHOUT_STDERR)
    assert (process.returncode, process.stdout) == (0, "done\n")
