"""The arguments and options that several commands share, each written once.

A command takes them as types, with a default beside: `batch_size: BatchSize = BATCH_SIZE`. The options of a search come
from the table in search/options.py: a command that `takes_search_options` gets them as one argument, `search`.
"""

import functools
import inspect
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, get_args

import typer

from keras_transformer.pieces.batching import LONGEST_SOURCE
from keras_transformer.search.options import OPTIONS, TARGET_PREFIX, Option
from keras_transformer.text.asks import FORBIDDEN, GLOSSARY, KEEP, PREFIX, PROTECT, REQUIRED
from keras_transformer.text.glossary import FLAGS
from keras_transformer.text.spans import KINDS, Protection


class SearchArguments(NamedTuple):
    """The options of a search as the command line has them. They are not checked: a run may have others as defaults."""

    values: dict[str, Any]  # by field of SearchOptions
    typed: frozenset[str]  # the fields that stand on the command line; the others have their default

    def with_run_defaults(self, run_defaults: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values; of those that were not typed, the run's own, if it has them."""
        return {**self.values, **run_defaults, **{name: self.values[name] for name in self.typed}}


def takes(name: str, options: Iterable[inspect.Parameter], value_of: Callable) -> Callable[[Callable], Callable]:
    """Return a decorator: it gives a command these options in place of its parameter `name`, `value_of(**options)`."""
    options = list(options)

    def decorate(command: Callable) -> Callable:
        def call(**arguments: Any) -> Any:
            value = value_of(**{option.name: arguments.pop(option.name) for option in options})
            return command(**arguments, **{name: value})

        signature = []
        for parameter in inspect.signature(command).parameters.values():
            is_own = parameter.name != name
            signature += [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)] if is_own else options
        functools.update_wrapper(call, command)
        call.__dict__["__signature__"] = inspect.Signature(signature)
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in signature}
        return call

    return decorate


def option_of(name: str, kind: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """Return an option, or an argument, as `takes` wants it; without a default it is needed, or `kind` has one."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def takes_search_options(*names: str, **defaults: Any) -> Callable[[Callable], Callable]:
    """Give a command these options of a search, or all of them, in place of its parameter `search`: SearchArguments.

    Each has the type, help and default of its row in search/options.py, or the default in `defaults`.
    """
    options = [option_of("context", typer.Context)]
    for option in (OPTIONS[name] for name in names or OPTIONS):
        options.append(option_of(option.name, type_of(option), defaults.get(option.name, option.default)))

    def arguments_of(context: typer.Context, **values: Any) -> SearchArguments:
        sources = {name: context.get_parameter_source(name) for name in values}
        typed = frozenset(name for name, source in sources.items() if source and source.name != "DEFAULT")
        return SearchArguments(values, typed)

    return takes("search", options, arguments_of)


def takes_served_options(*names: str, without: Iterable[str] = ()) -> Callable[[Callable], Callable]:
    """Give a command these options of a search, or all that an export has as inputs, in place of `search`.

    `search` gets those that stand on the command line, by name; the others are what the export was made with.
    """
    options = []
    for option in OPTIONS.values():
        if not option.not_served and option.name not in without and (not names or option.name in names):
            kind, info = get_args(type_of(option))
            kind = Annotated[kind | None, typer.Option(help=info.help, show_default="as exported")]
            options.append(option_of(option.name, kind, None))

    def typed(**values: Any) -> dict[str, Any]:
        return {name: value for name, value in values.items() if value is not None}

    return takes("search", options, typed)


def type_of(option: Option) -> Any:
    """Return the type of an option on the command line, with its help. There, `beam_size` is called --beam-size."""
    kind = Literal[option.choices] if option.choices else int if option.is_whole else float
    text = re.sub(r"\b[a-z]+(_[a-z]+)+\b", lambda name: "--" + name[0].replace("_", "-"), option.help)
    if option.default is None:
        return Annotated[kind | None, typer.Option(help=text, show_default="none")]
    return Annotated[kind, typer.Option(help=text)]


def file_option(flag: str, help: str) -> Any:
    """Return the option of a file that is read, if it is given."""
    return typer.Option(flag, metavar="FILE", help=help, show_default="none")


RunName = Annotated[  # `opened` in runs.py makes a folder of it
    str,
    typer.Argument(
        metavar="RUN",
        help="The run folder that training wrote, or a preset; or hf://USER/MODEL, one or a MarianMT model on the "
        "Hugging Face hub.",
        show_default=False,
    ),
]

Ensemble = Annotated[
    list[str],
    typer.Option(
        default_factory=list,
        metavar="RUN",
        help="Another run with the same tokenizer, whose predictions are averaged with those of RUN; may be repeated.",
        show_default="none",
    ),
]

TargetPrefix = Annotated[str, typer.Option(help=TARGET_PREFIX)]

PrefixFile = Annotated[
    pathlib.Path | None,
    file_option("--target-prefixes", "A file of such texts, one per line of input; an empty line is none."),
]

Protect = Annotated[
    str,
    typer.Option(
        metavar="KINDS",
        help=f"What must come through as it is, with commas in between: {','.join(KINDS)}.",
        show_default="none",
    ),
]

KeepFile = Annotated[
    pathlib.Path | None,
    file_option(
        "--keep",
        "A file of words that stay as they are, one per line; one with a tab and `regex` behind it is a pattern.",
    ),
]

GlossaryFile = Annotated[
    pathlib.Path | None,
    file_option(
        "--glossary",
        f"A file of terms and their translations, with a tab in between; flags after a second tab: {', '.join(FLAGS)}.",
    ),
]

ForbidFile = Annotated[
    pathlib.Path | None,
    file_option("--forbid", "A file of words that no translation may have, one per line; capitals do not count."),
]

Require = Annotated[
    list[str],
    typer.Option(
        default_factory=list,
        metavar="TEXT",
        help="A phrase that every translation must have; may be repeated.",
        show_default="none",
    ),
]

RequiredFile = Annotated[
    pathlib.Path | None,
    file_option(
        "--required",
        "A file of such phrases, one line per line of input, with tabs between phrases; an empty line is none.",
    ),
]


SourceLanguage = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="CODE",
        help="The language of the input, such as en, for a model that reads several.",
        show_default="the only one",
    ),
]

OutputLanguage = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="CODE",
        help="The language to translate into, such as de, for a model that writes several.",
        show_default="the only one",
    ),
]


Samples = Annotated[
    int,
    typer.Option(
        "--mbr",
        min=0,
        metavar="N",
        help="Draw N translations of each line too, and write the one with the highest expected chrF (minimum Bayes "
        "risk); 0: search alone.",
    ),
]


class TextArguments(NamedTuple):
    """What the options of `takes_text_options` ask of the translation of each line, or of the first sentence."""

    require: list[str]
    target_prefix: str = ""
    target_prefixes: pathlib.Path | None = None
    protect: str = ""
    keep: pathlib.Path | None = None
    glossary: pathlib.Path | None = None
    forbid: pathlib.Path | None = None
    required: pathlib.Path | None = None
    source_language: str = ""
    target_language: str = ""

    @property
    def languages(self) -> dict[str, Any]:
        """Those of `Engine.translate`, by its arguments."""
        return {"source_language": self.source_language, "target_language": self.target_language}

    @property
    def files(self) -> tuple[pathlib.Path | None, ...]:
        """Those that are read."""
        return self.keep, self.glossary, self.forbid, self.target_prefixes, self.required

    @property
    def names(self) -> frozenset[str]:
        """What of the abilities of an engine is needed (text/asks.py)."""
        asked = {
            PREFIX: self.target_prefix or self.target_prefixes,
            REQUIRED: self.require or self.required,
            FORBIDDEN: self.forbid,
            PROTECT: self.protect,
            KEEP: self.keep,
            GLOSSARY: self.glossary,
        }
        return frozenset(name for name, value in asked.items() if value)

    @property
    def is_of_lines(self) -> bool:
        """Whether an option is for lines alone."""
        return bool(self.require) or {self.target_prefixes, self.required} != {None}

    def protection(self) -> Protection:
        """Raises UserError as `Protection.read` does."""
        return Protection.read(self.protect, self.keep, self.glossary, self.forbid)


TEXT_OPTIONS = {  # by field of TextArguments
    "require": Require,
    "target_prefix": TargetPrefix,
    "target_prefixes": PrefixFile,
    "protect": Protect,
    "keep": KeepFile,
    "glossary": GlossaryFile,
    "forbid": ForbidFile,
    "required": RequiredFile,
    "source_language": SourceLanguage,
    "target_language": OutputLanguage,
}


def takes_text_options(*without: str) -> Callable[[Callable], Callable]:
    """Give a command the options of the text in place of its parameter `text`: TextArguments."""
    defaults = TextArguments._field_defaults
    options = [
        option_of(name, kind, defaults.get(name, inspect.Parameter.empty))
        for name, kind in TEXT_OPTIONS.items()
        if name not in without
    ]
    return takes("text", options, TextArguments)


MaxSourceTokens = Annotated[
    int, typer.Option(help=f"Longer sentences are truncated to this number of tokens; at most {LONGEST_SOURCE}.")
]

BatchSize = Annotated[int, typer.Option(help="Sentences translated together.")]

WithScores = Annotated[bool, typer.Option("--scores", help="Write each line as `score<TAB>text`.")]

WithConfidence = Annotated[
    bool,
    typer.Option(
        "--confidence",
        help="Write how likely each translation is good, from 0 to 1, before it; for a run, or the export of one, that "
        "`calibrate` has calibrated.",
    ),
]

Constrained = Annotated[
    bool,
    typer.Option(
        "--constrained", help="For a run on a treebank: forbid tokens with which an output could not become a tree."
    ),
]

Precision = Annotated[
    str,
    typer.Option(help="Of weights and matrix products: float32, or bfloat16, which is faster if the processor has it."),
]
