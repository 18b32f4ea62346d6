"""What every command shares."""

import os
import sys

import pytest
import typer

from keras_transformer.console import exit_codes, on_one_line, quiet_start
from keras_transformer.errors import InputError
from keras_transformer.files import read_lines


def test_lines_end_at_line_feeds_alone_and_lose_carriage_returns_and_a_byte_order_mark():
    stream = [b"\xef\xbb\xbfone\r\n", "two\u2028still two\n".encode(), b"\n", b"last"]
    assert list(read_lines(stream, "x")) == ["one", "two\u2028still two", "", "last"]


def test_what_is_not_utf_8_is_named_by_line_and_byte():
    with pytest.raises(InputError, match="in.txt, line 2 is not UTF-8: its byte 3 is 0xff"):
        list(read_lines([b"fine\n", b"ab\xff\n"], "in.txt"))


def test_a_line_break_inside_a_translation_becomes_a_space():
    assert on_one_line("a\r\nb\nc") == "a b c"


def test_a_mistake_is_one_sentence_and_exit_code_1_and_other_errors_pass(capsys):
    with pytest.raises(typer.Exit) as end:
        with exit_codes():
            raise InputError("Line 1 is wrong.")
    assert end.value.exit_code == 1
    assert capsys.readouterr().err == "Error: Line 1 is wrong.\n"
    with pytest.raises(ZeroDivisionError):
        with exit_codes():
            raise ZeroDivisionError


def test_a_quiet_start_keeps_back_what_is_written_to_stderr_but_not_after_an_error(capfd):
    with quiet_start():
        os.write(2, b"greeting\n")
    print("after", file=sys.stderr)
    assert capfd.readouterr().err == "after\n"
    with pytest.raises(ImportError):
        with quiet_start():
            os.write(2, b"the reason\n")
            raise ImportError
    assert capfd.readouterr().err == "the reason\n"
