"""The table of formats. A row is a name and a class whose fields are its options; the command is made from the table.

To add a format, write its class into a folder of its own and add a row here.
"""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

import typer

from keras_transformer.commands.options import in_place_of

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
    keyword, options = inspect.Parameter.KEYWORD_ONLY, options_of(*FORMATS.values())
    kind: Any = Annotated[Literal[tuple(FORMATS)], typer.Option(help="What to write.")]
    choice = inspect.Parameter("format", keyword, default="saved_model", annotation=kind)

    def call(format: str, **arguments: Any) -> Any:
        values = {name: arguments.pop(name) for name in options}
        return command(**arguments, format=FormatArguments(format, values))

    return in_place_of("format", [choice, *options.values()], command, call)


def options_of(*formats: type[Format]) -> dict[str, inspect.Parameter]:
    """Return the options of formats as parameters of a command, by field; what several have is one option."""
    fields = [field for format in formats for field in dataclasses.fields(format)]
    keyword = inspect.Parameter.KEYWORD_ONLY
    return {
        field.name: inspect.Parameter(field.name, keyword, default=field.default, annotation=field.type)
        for field in fields
    }


def flag_of(parameter: inspect.Parameter) -> str:
    """Return an option as it is typed: `--alignment-layer`."""
    [option] = parameter.annotation.__metadata__
    flag = option.default  # in Annotated, Typer takes its first argument for a flag
    return flag if isinstance(flag, str) else f"--{parameter.name.replace('_', '-')}"
