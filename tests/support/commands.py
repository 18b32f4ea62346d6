"""Commands called within this process, and what they must print."""

import importlib
import re
import shlex

import typer.main
from typer.testing import CliRunner

from keras_transformer.__main__ import module_of
from keras_transformer.ground.command_table import COMMANDS
from tests.support.places import ROOT


def invoke(app, *arguments, stdin=None):
    """Typer's result of calling a command with `arguments`, and with `stdin`, str or bytes, as its input."""
    return CliRunner().invoke(app, list(map(str, arguments)), input=stdin)


def assert_one_sentence(result, *parts):
    """The command printed one sentence that contains `parts`, wrote nothing to stdout and exited with code 1."""
    assert result.exit_code == 1, result.output
    assert result.stdout == "" and isinstance(result.exception, SystemExit)
    assert result.stderr.startswith("Error: ") and result.stderr.endswith("\n") and result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    for part in parts:
        assert str(part) in result.stderr


def parse(line):
    """Parse a line like `keras-transformer train FILE` or `python -m benchmarks.recipes.race`; its command is not run.

    Returns the context of click, whose `params` has each argument by name. Raises click's exception if an option is
    wrong, and KeyError or ModuleNotFoundError if there is no such command.
    """
    program, name, *arguments = shlex.split(re.split(r" [<>] ", line)[0].replace("python -m ", "python-m "))
    if program == "keras-transformer":
        if name not in COMMANDS:
            raise KeyError(f"There is no command {name}.")
        module = module_of(name)
    else:
        is_package = (ROOT / name.replace(".", "/")).is_dir()
        module = importlib.import_module(f"{name}.__main__" if is_package else name)
    command = typer.main.get_command(module.app)
    if hasattr(command, "commands"):  # `keras-transformer cluster translate`
        name, *arguments = arguments
        command = command.commands[name]
    return command.make_context(name, arguments, ignore_unknown_options=False)
