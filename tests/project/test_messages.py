"""Messages about errors of the system, whose `str` has a number, as in "[Errno 21]", and about a closed output."""

import ast
import os
import re
import sys

import h5py
import pytest

from keras_transformer.__main__ import module_of
from keras_transformer.ground.errors import first_line_of
from keras_transformer.ground.files import resolved
from tests.support.places import ROOT

SYSTEM = {"OSError", "PermissionError", "FileNotFoundError", "IsADirectoryError", "NotADirectoryError"}
PRINTS = {"debug", "info", "warning", "error", "exception", "write", "echo", "print", "str", "repr", "ascii"}


@pytest.mark.parametrize("use", [open, h5py.File, os.unlink, os.listdir])
@pytest.mark.parametrize("name", ["folder", "nothing", "a/b", "\udcff"])
def test_an_error_of_the_operating_system_is_the_file_and_the_reason_without_a_number(tmp_path, use, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "a").touch()
    try:
        use(os.fspath(tmp_path / name))
    except OSError as error:
        assert first_line_of(error).endswith(f"{os.strerror(error.errno)}.")
        assert not re.search("errno", first_line_of(error), re.IGNORECASE)


def as_it_is(code):
    """The lines of handlers of errors of the operating system that put such an error into a text as it is."""
    for handler in ast.walk(ast.parse(code)):
        if not isinstance(handler, ast.ExceptHandler) or not handler.name or not handler.type:
            continue
        if not SYSTEM & {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}:
            continue
        for node in ast.walk(ast.Module(handler.body, [])):
            values = []
            if isinstance(node, ast.FormattedValue):
                values = [node.value]
            elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in PRINTS:
                values = node.args
            yield from (node.lineno for each in values if isinstance(each, ast.Name) and each.id == handler.name)


@pytest.mark.parametrize("package", ["keras_transformer", "train", "export", "cluster"])
def test_no_message_has_the_number_of_an_error_of_the_operating_system(package):
    files = (ROOT / package).rglob("*.py")
    assert [f"{file}:{line}" for file in files for line in as_it_is(file.read_text(encoding="utf-8"))] == []


def test_links_in_a_circle_are_a_path_that_is_not_there_wherever_a_path_is_looked_at(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    assert resolved(tmp_path / "loop" / "file") == resolved(tmp_path) / "loop" / "file"
    for package in ("keras_transformer", "train", "export", "cluster"):
        for file in (ROOT / package).rglob("*.py"):  # Path.resolve raises RuntimeError in a circle
            assert not re.search(r"(?<!__file__\))\.resolve\(\)", file.read_text(encoding="utf-8")), file


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("score", ["no-run", "--source", __file__, "--target", __file__]),
        ("evaluate", ["no-run"]),
        ("compare", ["a", "b"]),
    ],
)
def test_a_command_whose_result_is_what_it_prints_needs_an_open_output(name, arguments, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)  # as after `>&-`
    with pytest.raises(SystemExit) as ended:
        module_of(name).app(arguments)
    assert ended.value.code == 1 and "Standard output is closed: give a file" in capsys.readouterr().err
