"""`keras-transformer`: one program for all commands, whose help imports nothing and whose mistakes are one sentence."""

import contextlib
import importlib
import importlib.metadata
import json
import signal
import tomllib
import types

import pytest
import typer.main

from keras_transformer import __main__ as program
from keras_transformer.ground import version
from keras_transformer.ground.command_table import COMMANDS
from keras_transformer.ground.version import version_line
from tests.support.findings import installed
from tests.support.places import ROOT
from tests.support.processes import python

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WIDTH = 80  # of a terminal
HEAVY = {"keras", "tensorflow", "jax", "matplotlib"}


@pytest.fixture
def as_started():
    """Within, signals are handled as when Python starts."""
    defaults = {signal.SIGINT: signal.default_int_handler, signal.SIGPIPE: signal.SIG_IGN}
    before = {number: signal.signal(number, handler) for number, handler in defaults.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("file, expected", [("train/a.py", True), ("x/train/a.py", False), ("train.py", False)])
def test_only_the_folder_beside_the_package_is_that_of_the_checkout(file, expected, monkeypatch):
    for origin, is_checkout in ((str(ROOT / file), expected), (None, False)):
        spec = types.SimpleNamespace(origin=origin)
        monkeypatch.setattr(program.importlib.util, "find_spec", {"train": spec}.get)
        assert program.is_checkout_on_path() == is_checkout


@pytest.mark.parametrize(
    ("arguments", "code", "output", "errors"),
    [
        (["--help"], None, "Usage: kt COMMAND", ""),
        (["--version"], None, "keras-transformer-mt ", ""),
        ([], 2, "", "Usage: kt COMMAND"),
        (["trian"], 2, "", "Error: There is no command 'trian'. Did you mean train? `kt --help`"),
        (["xyzzy"], 2, "", "Error: There is no command 'xyzzy'. `kt --help`"),
    ],
)
def test_a_line_without_a_command_is_answered(arguments, code, output, errors, as_started, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["kt", *arguments])
    with contextlib.nullcontext() if code is None else pytest.raises(SystemExit) as end:
        program.main("kt", arguments or None)
    printed = capsys.readouterr()
    assert printed.out.startswith(output) and printed.err.startswith(errors)
    assert [bool(printed.out), bool(printed.err)] == [bool(output), bool(errors)] and (end and end.value.code) == code


def click_command(name):
    return typer.main.get_command(program.module_of(name).app)


def test_each_line_of_the_help_is_the_first_of_its_command():
    helps = {name: command.help for name, command in COMMANDS.items()}
    assert helps == {name: click_command(name).help.splitlines()[0] for name in COMMANDS}
    lines = program.help_text("keras-transformer").splitlines()
    columns = {line.find(helps[line.split()[0]]) for line in lines if line[:2] == "  "}
    assert max(map(len, lines)) <= WIDTH and len(columns) == 1 and -1 not in columns


def test_every_module_that_starts_a_command_is_in_the_table():
    starts = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for folder in ("keras_transformer", "train", "export", "cluster")
        for path in (ROOT / folder).rglob("*.py")
        if "command_app()\n" in path.read_text(encoding="utf-8")
    }
    assert starts == {command.module for command in COMMANDS.values()}


def test_pip_installs_what_the_messages_name():
    module, function = PROJECT["scripts"]["keras-transformer"].split(":")
    assert getattr(importlib.import_module(module), function) is program.main
    assert PROJECT["name"] == program.DISTRIBUTION
    assert {command.extra for command in COMMANDS.values()} - {""} <= set(PROJECT["optional-dependencies"])


def asked(*arguments):
    """Run the program in a process of its own. Returns its exit code, what it prints, and what it has imported."""
    script = """
import json, sys, traceback
from keras_transformer.__main__ import main
code = 0
try:
    main(arguments=sys.argv[1:])
except SystemExit as end:
    code = end.code
print(json.dumps([code, sorted(sys.modules)]))
"""
    process = python("-c", script, *arguments)
    output, _, last = process.stdout.rstrip("\n").rpartition("\n")
    code, modules = json.loads(last)
    return code, output, process.stderr, set(modules)


@pytest.mark.slow
def test_help_lists_the_commands_and_imports_none():
    code, output, errors, modules = asked("--help")
    assert (code, output, errors) == (0, program.help_text("keras-transformer"), "")
    assert not modules & {*HEAVY, "typer", "pydantic", "numpy", "train", "export"}
    code, output, errors, modules = asked("--version")
    assert (code, output, errors) == (0, version_line(), "") and not modules & {*HEAVY, "typer", "numpy"}
    code, output, errors, _ = asked()
    assert (code, output) == (2, "") and errors == program.help_text("keras-transformer") + "\n"


@pytest.mark.slow
def test_the_help_of_no_command_imports_keras_or_tensorflow():
    script = """
import contextlib, json, sys
from keras_transformer.__main__ import main
from keras_transformer.ground.command_table import COMMANDS
for name in COMMANDS:
    with contextlib.suppress(SystemExit):
        main(arguments=[name, "--help"])
print(json.dumps(sorted(sys.modules)))
"""
    process = python("-c", script)
    assert process.returncode == 0, process.stderr
    *helps, modules = process.stdout.splitlines()
    assert [name for name in COMMANDS if f"Usage: keras-transformer {name} [OPTIONS]" not in "\n".join(helps)] == []
    assert not set(json.loads(modules)) & HEAVY


@pytest.mark.slow
def test_python_m_names_the_program_as_it_was_called():
    process = python("-m", "keras_transformer", "--help")
    assert process.stdout.startswith("Usage: python -m keras_transformer COMMAND")
    process = python("-m", "keras_transformer", "evaluate", "--help")
    assert process.stdout.startswith("Usage: python -m keras_transformer evaluate [OPTIONS]")
    process = python("-m", "train.evaluate", "--help")
    assert process.stdout.startswith("Usage: python -m train.evaluate [OPTIONS]")


@pytest.mark.slow
def test_a_mistake_is_one_sentence_and_an_exit_code():
    code, output, errors, _ = asked("trian", "configs/numbers.toml")
    assert (code, output, errors.count("\n")) == (2, "", 1)
    assert errors.startswith("Error: ") and "'trian'" in errors and "Did you mean train?" in errors
    code, output, errors, _ = asked("train", "no/such/file.toml")
    assert (code, output, errors.count("\n")) == (1, "", 1) and "no/such/file.toml" in errors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "module", "package"),
    [("train", "pydantic", '"keras-transformer-mt[train]"'), ("score", "sentencepiece", "keras-transformer-mt")],
)
def test_a_package_that_is_missing_is_named_with_its_extra(tmp_path, command, module, package):
    script = """
import sys
sys.modules[sys.argv[1]] = None
from keras_transformer.__main__ import main
main(arguments=sys.argv[2:])
"""
    (tmp_path / "config.toml").write_text('[data]\nsource = "numbers"\n', encoding="utf-8")
    (tmp_path / "text").write_text("one\n", encoding="utf-8")
    arguments = {
        "train": [tmp_path / "config.toml"],
        "score": [tmp_path, "--source", tmp_path / "text", "--target", tmp_path / "text"],
    }
    process = python("-c", script, module, command, *arguments[command])
    assert (process.returncode, process.stdout) == (1, "")
    assert process.stderr == (
        f"Error: `keras-transformer {command}` needs the module {module}, which is not installed: "
        f"pip install {package}\n"
    )


@pytest.mark.slow
def test_a_module_of_another_project_is_not_taken_for_a_command(tmp_path):
    """In the folder of a user who has a train.py, the program starts its own."""
    (tmp_path / "train.py").write_text("raise SystemExit('another project')\n", encoding="utf-8")
    script = "import sys; sys.path.insert(0, sys.argv[1]); from keras_transformer.__main__ import *; "
    process = python("-c", script + "print(is_checkout_on_path())", tmp_path)
    assert process.stdout == "False\n", process.stderr


def test_a_checkout_has_the_version_of_its_pyproject_whatever_is_installed(monkeypatch):
    installed(monkeypatch, "9.9")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert version.project_of_checkout() == project
    assert version.version_line() == f"keras-transformer-mt {project['version']}"
