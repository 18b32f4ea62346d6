"""Where benchmarks leave their results, and the command that is written into them."""

import pathlib
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import BinaryIO

from keras_transformer.ground.files import behind_links, write_atomically

RESULTS = pathlib.Path(__file__).parent / "results"


def command_line(name: str) -> str:
    """Return how this process was started: `python -m benchmarks.NAME` and its arguments."""
    return shlex.join(["python", "-m", f"benchmarks.{name}", *sys.argv[1:]])


def whole_command_line(name: str) -> str:
    """The same without `--only`: the command of a table whose rows were trained some at a time."""
    arguments = iter(sys.argv[1:])
    kept = []
    for argument in arguments:
        if argument == "--only":
            next(arguments, None)  # its value
        elif not argument.startswith("--only="):
            kept.append(argument)
    return shlex.join(["python", "-m", f"benchmarks.{name}", *kept])


def write_result(path: pathlib.Path, content: Callable[[BinaryIO], object] | bytes | str) -> None:
    """Write a file as `write_atomically` does, into a folder that is made if there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(behind_links(path), content)


def row_names(folders: Sequence[pathlib.Path]) -> list[str]:
    """Return what each folder is called in a table: its name, or the path as given if two are alike."""
    names = [folder.name for folder in folders]
    return names if len({*names}) == len(names) else [str(folder) for folder in folders]
