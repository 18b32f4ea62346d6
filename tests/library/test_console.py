"""What every command shares: exit codes, a quiet start, groups and batches of lines."""

import contextlib
import importlib
import io
import math
import os
import sys
import types

import pytest
import typer

from keras_transformer.commands import console
from keras_transformer.commands.console import CutLines, exit_codes, groups, output_line
from keras_transformer.ground.durations import duration
from keras_transformer.ground.errors import InputError, UserError, first_line_of
from keras_transformer.ground.imports import quiet_imports
from keras_transformer.pieces.batching import batches_by_length, list_of_lines
from keras_transformer.pieces.translation import Translation
from tests.support.processes import python


def test_packages_are_unavailable_within_and_come_back():
    with quiet_imports(without=("xmlrpc", "pytest")):
        with pytest.raises(ImportError):
            importlib.import_module("xmlrpc.client")
        importlib.import_module("pytest")  # imported before: it stays
    assert "xmlrpc" not in sys.modules
    importlib.import_module("xmlrpc.client")


@pytest.mark.parametrize(
    "error, message",
    [
        (InputError("Line 1 is wrong."), "Line 1 is wrong."),
        (FileNotFoundError(2, "No such file or directory", "a.txt"), "a.txt: No such file or directory."),
        (OSError(28, "No space left on device"), "No space left on device."),
        (OSError("cannot read it"), "cannot read it."),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_1(capsys, error, message):
    with pytest.raises(typer.Exit) as end:
        with exit_codes():
            raise error
    assert end.value.exit_code == 1
    assert capsys.readouterr().err == f"Error: {message}\n"


class ResourceExhaustedError(Exception):
    """As TensorFlow's is called."""


@pytest.mark.parametrize("error", [ResourceExhaustedError("OOM when allocating [9]\nHint"), MemoryError()])
def test_exhausted_memory_is_one_line_that_says_what_to_do(capsys, error):
    with pytest.raises(typer.Exit) as end:
        with exit_codes():
            raise error
    assert end.value.exit_code == 1
    message = capsys.readouterr().err
    assert message.startswith(f"Error: Memory was exhausted: {first_line_of(error)} ") and "--batch-size" in message
    assert message.count("\n") == 1


def test_an_error_of_the_program_passes_with_its_traceback():
    with pytest.raises(ZeroDivisionError):
        with exit_codes():
            raise ZeroDivisionError


COMMAND = """
from keras_transformer.commands.console import command_app, exit_codes
from keras_transformer.ground.errors import Interrupted, UserError

app = command_app()

@app.command()
def main():
    with exit_codes():
        raise {error}

app()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "error, code, message",
    [
        ("Interrupted('Stopped at step 7.')", 75, b"Stopped at step 7.\n"),
        ("UserError('No such thing.')", 1, b"Error: No such thing.\n"),
        ("OSError(28, 'No space left on device')", 1, b"Error: No space left on device.\n"),
    ],
)
def test_the_exit_codes_of_a_process(error, code, message):
    process = python("-c", COMMAND.format(error=error), stdin=b"")
    assert (process.returncode, process.stdout, process.stderr) == (code, b"", message)


def test_quiet_imports_hide_stderr_unless_an_unexpected_exception_is_raised(capfd):
    with quiet_imports():
        os.write(2, b"greeting\n")
    print("after", file=sys.stderr)
    assert capfd.readouterr().err == "after\n"
    with pytest.raises(ImportError):
        with quiet_imports():
            os.write(2, b"the reason\n")
            raise ImportError
    assert capfd.readouterr().err == "the reason\n"
    with pytest.raises(UserError):
        with quiet_imports():
            os.write(2, b"a notice\n")
            raise UserError
    assert capfd.readouterr().err == ""


LOGS = """
import logging, os, sys
from keras_transformer.commands.console import prepare_process
from keras_transformer.ground.imports import quiet_imports
prepare_process()
with quiet_imports():
    os.write(2, b"greeting")
    logging.getLogger("export").warning("seen")
print("after", file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("closed", "expected"), [(False, b"WARNING: seen\nafter\n"), (True, b"")])
def test_quiet_imports_hide_no_log_and_need_no_stderr(closed, expected):
    close = "import os, sys; os.close(2); sys.stderr = None\n" if closed else ""  # as after `2>&-`
    process = python("-c", close + LOGS, stdin=b"")
    assert (process.returncode, process.stdout, process.stderr) == (0, b"", expected)


# groups of lines and batches


def never():
    return False


def test_lines_are_grouped_by_many_and_lines_that_are_awaited_come_alone(monkeypatch):
    monkeypatch.setattr(console, "BATCHES_AT_ONCE", 2)
    assert list(groups("abcdefg", never, batch_size=2)) == [list("abcd"), list("efg")]
    assert list(groups("abcd", never, batch_size=2)) == [list("abcd")]
    assert list(groups("abc", lambda: True, batch_size=2)) == [["a"], ["b"], ["c"]]
    assert list(groups("", never, batch_size=2)) == []


@pytest.mark.parametrize("error", [UserError("line 3"), OSError("broken")])
def test_lines_before_an_error_are_grouped_first(error):
    def lines():
        yield from ["a", "b"]
        raise error

    found = groups(lines(), never, batch_size=2)
    assert next(found) == ["a", "b"]
    with pytest.raises(type(error), match=str(error)):
        next(found)


@pytest.mark.parametrize("name", ["stdin", "stdout"])
def test_a_closed_stream_is_one_sentence(monkeypatch, name):
    """Python has None for a stream that is closed when it starts, as a service manager may have it."""
    monkeypatch.setattr(console.sys, name, None)
    for stream in {"stdin", "stdout"} - {name}:
        monkeypatch.setattr(console.sys, stream, io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(InputError, match=f"Standard {name.removeprefix('std')}put is closed"):
        console.translate_lines(lambda lines, first_line: [], 1)


def test_a_line_of_output_has_the_text_and_the_score():
    translation = types.SimpleNamespace(text="a\r\nb", score=-0.25)
    assert output_line(translation, with_score=False) == "a b\n"
    assert output_line(translation, with_score=True) == "-0.2500\ta b\n"


def test_batches_are_sorted_by_length_and_equal_lengths_keep_their_order():
    assert list(batches_by_length({0: 5, 1: 2, 2: 3, 4: 2}, 2)) == [[1, 4], [2, 0]]
    assert list(batches_by_length({}, 2)) == []


def test_a_list_of_lines_is_not_one_string():
    assert list_of_lines(line for line in "ab") == ["a", "b"]
    with pytest.raises(TypeError, match="one string. Received: 'two'"):
        list_of_lines("two")
    for other in (None, math.nan, b"two"):
        with pytest.raises(TypeError, match=f"Prefix 2 .*{other!r}"):
            list_of_lines(["one", other], "Prefix")


def test_the_first_line_of_an_error():
    assert first_line_of(ValueError("\none\ntwo")) == first_line_of(ValueError("one.")) == "one."
    assert first_line_of(ValueError()) == "ValueError."


@pytest.mark.slow
def test_a_command_prints_utf_8_whatever_the_locale_is_and_names_of_files_as_their_bytes():
    code = "from keras_transformer.commands.console import prepare_process; prepare_process(); print('\\u201e\\udcff')"
    assert python("-c", code, stdin=b"", PYTHONIOENCODING="latin-1").stdout == "\u201e".encode() + b"\xff\n"


def test_lines_with_a_translation_that_was_cut_are_counted_and_named(caplog):
    cut_lines, whole, cut = CutLines(), Translation("a", -1.0), Translation("a", -1.0, is_cut=True)
    cut_lines.note([[whole], [Translation("a", -1.0, is_cut=None)]], 1)
    cut_lines.warn("raise it")
    assert not caplog.messages
    cut_lines.note([[whole, cut], [whole], [cut]], 3)
    cut_lines.warn("raise it")
    cut_lines.note([[cut]] * 8, 6)
    cut_lines.warn("raise it")
    cut_lines.note([[cut]] * 12, 14)
    cut_lines.warn("raise it")
    few, ten, many = caplog.messages
    assert ": 10 (line numbers: 3, 5, 6, 7, 8, 9, 10, 11, 12, 13)" in ten
    assert ": 2 (line numbers: 3, 5)" in few and few.endswith("raise it")
    assert ": 22 (line numbers: 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, ...)" in many
    caplog.clear()
    lines = CutLines("sentence")
    lines.note([[whole], [whole, Translation("a", -1.0, is_forced=True)], [cut]], 4)
    lines.warn("raise it")
    assert [
        f"({numbers})" in message
        for numbers, message in zip(("sentence numbers: 6", "sentence numbers: 5"), caplog.messages, strict=True)
    ] == [True, True] and "required phrases were forced on" in caplog.messages[1]


def test_if_the_input_breaks_what_was_cut_before_is_named_before_the_error(caplog):
    cut_lines, said = CutLines(), []
    with pytest.raises(InputError), cut_lines.warning("raise it", lambda: said.extend(caplog.messages)):
        cut_lines.note([[Translation("a", -1.0, is_cut=True)]], 7)
        raise InputError("no more")
    assert said == caplog.messages and "(line numbers: 7); raise it" in said[0]


@pytest.mark.parametrize(("score", "confidence"), [(False, False), (True, False), (False, True), (True, True)])
def test_columns_before_a_text_are_those_that_are_asked_for(score, confidence):
    columns = ["-1.5000"] * score + ["0.250"] * confidence + ["a b"]
    assert output_line(Translation("a\r\nb", -1.5, confidence=0.25), score, confidence) == "\t".join(columns) + "\n"
    output_line(Translation("a", -1.5, confidence=0.0), score, confidence)
    with pytest.raises(UserError, match="calibrate") if confidence else contextlib.nullcontext():
        output_line(Translation("a", -1.5), score, confidence)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (9, "9 s"), (59.6, "1 min 00 s"), (65, "1 min 05 s"), (3599, "59 min 59 s"), (3725, "1 h 02 min")],
)
def test_a_duration_has_its_two_largest_units(seconds, text):
    assert duration(seconds) == text
