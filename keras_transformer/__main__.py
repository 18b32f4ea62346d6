"""`keras-transformer COMMAND`, and `python -m keras_transformer COMMAND`: one program for all commands."""

import difflib
import importlib
import importlib.util
import os
import pathlib
import sys
from collections.abc import Sequence
from types import ModuleType

from keras_transformer.commands.signals import end_on_interrupt, end_on_signals
from keras_transformer.ground.command_table import COMMANDS, DISTRIBUTION, GROUPS
from keras_transformer.ground.errors import first_line_of

USAGE_ERROR = 2  # the exit code of a wrong command line, as Typer has it


def main(prog_name: str = "keras-transformer", arguments: Sequence[str] | None = None) -> None:
    """Run the command that the first of `arguments` names with the others; they are those of the process if None."""
    end_on_interrupt()  # before a command imports anything, which takes a second
    try:
        dispatch(prog_name, arguments)
        if sys.stdout is not None:  # as after `>&-`
            sys.stdout.flush()
    except OSError as error:  # help, or what a command printed last, to a full disk
        print(f"Error: {first_line_of(error)}", file=sys.stderr)
        os._exit(1)  # Python would try to write once more, and print its own error


def dispatch(prog_name: str, arguments: Sequence[str] | None) -> None:
    """Print the help or the version, refuse what is no command, or run a command."""
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or [""]
    if name == "--help":
        end_on_signals()
        print(help_text(prog_name))
    elif name == "--version":
        from keras_transformer.ground.version import version_line  # after `end_on_interrupt`, as whatever takes time

        end_on_signals()
        print(version_line())
    elif not name:
        print(help_text(prog_name), file=sys.stderr)
        sys.exit(USAGE_ERROR)
    elif name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        meant = f" Did you mean {near[0]}?" if near else ""
        print(f"Error: There is no command {name!r}.{meant} `{prog_name} --help` lists all commands.", file=sys.stderr)
        sys.exit(USAGE_ERROR)
    else:
        run(name, prog_name, rest)


def run(name: str, prog_name: str, arguments: Sequence[str]) -> None:
    """Run a command. If a module that it imports is not installed, one sentence names what installs it."""
    try:
        module_of(name).main(f"{prog_name} {name}", arguments)
    except ModuleNotFoundError as error:
        extra = COMMANDS[name].extra
        package = f'"{DISTRIBUTION}[{extra}]"' if extra else DISTRIBUTION
        print(
            f"Error: `{prog_name} {name}` needs the module {error.name}, which is not installed: pip install {package}",
            file=sys.stderr,
        )
        sys.exit(1)


def module_of(name: str) -> ModuleType:
    """Import and return the module of a command: see `Command` in ground/command_table.py."""
    module = COMMANDS[name].module
    is_inside = not module.startswith("keras_transformer.") and not is_checkout_on_path()
    return importlib.import_module(f"keras_transformer.{module}" if is_inside else module)


def is_checkout_on_path() -> bool:
    """Return whether `import train` finds the folder beside this package, and not another project's module."""
    found = importlib.util.find_spec("train")
    checkout = pathlib.Path(__file__).resolve().parents[1]
    origin = None if found is None else found.origin
    return origin is not None and pathlib.Path(os.path.realpath(origin)).parents[1] == checkout


def help_text(prog_name: str) -> str:
    """Return what `--help` prints: the commands in groups, a line each."""
    width = max(map(len, COMMANDS)) + 2
    lines = [
        f"Usage: {prog_name} COMMAND [OPTIONS] [ARGUMENTS]",
        "",
        "Train a Transformer on sentence pairs, translate with it, export and serve it.",
    ]
    for group, commands in GROUPS.items():
        lines += ["", f"{group}:", *(f"  {name:{width}}{command.help}" for name, command in commands.items())]
    ends = (
        f"`{prog_name} COMMAND --help` explains a command and its options.",
        f"`{prog_name} --version` prints what runs.",
    )
    return "\n".join([*lines, "", *ends])


if __name__ == "__main__":
    main("python -m keras_transformer")
