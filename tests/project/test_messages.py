"""Messages about errors of the operating system: `str` of such an error has its number, as in "[Errno 21]"."""

import ast

import pytest

from tests.support.places import ROOT

SYSTEM = {"OSError", "PermissionError", "FileNotFoundError", "IsADirectoryError", "NotADirectoryError"}
PRINTS = {"debug", "info", "warning", "error", "exception", "write", "echo", "print", "str", "repr", "ascii"}


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


@pytest.mark.parametrize("use", ["f'{error}.'", "log.error('%s', error)", "str(error)", "print(error)"])
def test_one_that_had_would_be_noticed(use):
    code = "try:\n    read()\nexcept {kind} as error:\n    {use}"
    assert list(as_it_is(code.format(kind="(ValueError, OSError)", use=use))) == [4]
    assert not list(as_it_is(code.format(kind="ValueError", use=use)))
    assert not list(as_it_is(code.format(kind="OSError", use="first_line_of(error)")))
