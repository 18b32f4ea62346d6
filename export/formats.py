"""The table of formats. A row is a name and a class whose fields are its options; the command is made from the table.

To add a format, write its class into a folder of its own and add a row here.
"""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

import typer

from keras_transformer.commands.options import option_of, takes

from .ctranslate2.format import CTranslate2
from .huggingface.format import HuggingFace
from .job import Format
from .litert.format import LiteRT
from .saved_model import SavedModel
from .versions import ExportError

FORMATS: dict[str, type[Format]] = {
    "saved_model": SavedModel,
    "ctranslate2": CTranslate2,
    "litert": LiteRT,
    "huggingface": HuggingFace,
}


class FormatArguments(NamedTuple):
    """`--format` and the options of all formats, as the command line has them."""

    name: str
    values: dict[str, Any]  # by field

    def chosen(self) -> Format:
        """Return the format with its options. Raises ExportError if the command line has one of another format."""
        own, options = options_of(FORMATS[self.name]), options_of(*FORMATS.values())
        for name, value in self.values.items():
            if name not in own and value != options[name].default:
                owners = [owner for owner, kind in FORMATS.items() if name in options_of(kind)]
                raise ExportError(
                    f"{flag_of(options[name])} {value[0] if isinstance(value, list) else value} is for --format "
                    f"{' and '.join(owners)}. --format {self.name} has {', '.join(map(flag_of, own.values()))}."
                )
        return FORMATS[self.name](**{name: self.values[name] for name in own})


def takes_format(command: Callable) -> Callable:
    """Give a command `--format` and the options of all formats in place of its parameter `format`: FormatArguments."""
    kind: Any = Annotated[Literal[tuple(FORMATS)], typer.Option(help="What to write.")]
    options = [option_of("format", kind, "saved_model"), *options_of(*FORMATS.values()).values()]
    return takes("format", options, lambda format, **values: FormatArguments(format, values))(command)


def options_of(*formats: type[Format]) -> dict[str, inspect.Parameter]:
    """Return the options of formats as parameters of a command, by field; what several have is one option."""
    fields = [field for format in formats for field in dataclasses.fields(format)]
    return {field.name: option_of(field.name, field.type, field.default) for field in fields}


def flag_of(parameter: inspect.Parameter) -> str:
    """Return an option as it is typed: `--alignment-layer`."""
    [option] = parameter.annotation.__metadata__
    flag = option.default  # in Annotated, Typer takes its first argument for a flag
    return flag if isinstance(flag, str) else f"--{parameter.name.replace('_', '-')}"
