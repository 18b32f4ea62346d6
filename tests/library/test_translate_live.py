"""`keras-transformer translate` on a terminal: a line is shown while it is written."""

import os
import pty
import subprocess
import sys
import tty

import pytest

from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.translator import Translator
from tests.support.places import ROOT
from tests.support.processes import environment_with
from tests.support.runs import SENTENCES

LINES = [SENTENCES[0], "", "12", "日本 é", "the dog " * 9]


@pytest.mark.slow
def test_a_terminal_shows_the_lines_of_a_pipe(random_folder):
    command = [sys.executable, "-m", "keras_transformer", "translate", random_folder, "--beam-size", "1"]
    terminal, inside = pty.openpty()
    tty.setraw(inside)  # a line break is one, and not CR LF
    shown, pieces = b"", []
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=inside, stderr=subprocess.PIPE, cwd=ROOT, env=environment_with({})
    ) as process:
        os.close(inside)
        for number, line in enumerate(LINES, 1):
            process.stdin.write(f"{line}\n".encode())
            process.stdin.flush()
            while shown.count(b"\n") < number:
                piece = os.read(terminal, 1 << 16)
                piece.decode()  # no half of a character
                shown, pieces = shown + piece, [*pieces, piece]
        process.stdin.close()
        assert process.wait() == 0, process.stderr.read()
    os.close(terminal)
    expected = Translator.load(random_folder, SearchOptions(beam_size=1)).translate(LINES)
    assert shown.decode() == "".join(f"{best.text}\n" for best in expected)
    assert len(pieces) > len(LINES)
