"""Options of commands that translate texts and files, and how these are read, translated and written."""

import contextlib
import logging
import os
import pathlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, BinaryIO, Literal, NamedTuple

import typer

from keras_transformer.commands.arriving_lines import ArrivingLines
from keras_transformer.commands.console import (
    BATCHES_AT_ONCE,
    CutLines,
    exit_codes,
    progress_logged,
    standard_input,
    standard_output,
)
from keras_transformer.commands.options import option_of, takes
from keras_transformer.commands.output_files import check_plain_text
from keras_transformer.commands.resumed_output import ResumedOutput, StandardOutput
from keras_transformer.ground.durations import duration
from keras_transformer.ground.errors import ConfigError, InputError
from keras_transformer.ground.files import behind_links, check_replaceable, read_lines
from keras_transformer.pieces.languages import check_code, short_code
from keras_transformer.pieces.translation import Translation
from keras_transformer.text.documents import DocumentTranslator
from keras_transformer.text.formats import FORMATS, PACKED, WITH_FIELDS, WITH_LANGUAGE, WITH_STATES, parts_of_format
from keras_transformer.text.formats.endings import LINES, format_of_name, why_not
from keras_transformer.text.formats.parts import Field, Part, TranslatedError

log = logging.getLogger("keras_transformer")

TEXT = "text"
STREAM = pathlib.Path("-")  # as --input and --output: the standard one
SENTENCE = 80  # characters, about: how many of them are translated at once
BATCHES_OF_A_FILE = 8  # that are translated between two writes: what a kill costs at most
ENGLISH = "en"  # whose ends of sentences are looked for unless another language is told
PAUSE = 10.0  # seconds between two lines of progress


class FileArguments(NamedTuple):
    """What the options of `takes_file_options` say. format: a name of FORMATS, or "lines"."""

    format: str
    fields: tuple[str, ...]
    language: str
    input: pathlib.Path | None  # None: standard input
    output: pathlib.Path | None  # None: standard output
    states: tuple[str, ...] = ()  # of translations in the file that are made anew
    target_language: str = ""  # that XLIFF tells then, if it tells none, and whose plurals others have
    everything: bool = False  # all translations in the file are made anew

    @property
    def of_format(self) -> dict[str, Any]:
        """Arguments that this format alone has."""
        language = {"target_language": self.target_language} if self.format in WITH_LANGUAGE else {}
        states = {"states": self.states, "everything": self.everything} if self.format in WITH_STATES else {}
        return language | states

    def parts(self, stream: Iterable[bytes], name: str) -> Iterator[Part]:
        """Return the parts of a file, whose name is for errors."""
        return parts_of_format(self.format, stream, name, self.fields, **self.of_format)

    def of_languages(self, source: str, target: str) -> "FileArguments":
        """Return these for a translation between two languages, "" for one that is not told."""
        language, target_language = self.language or short_code(source) or ENGLISH, self.target_language
        return self._replace(language=language, target_language=target_language or short_code(target))

    @property
    def is_plain(self) -> bool:
        """Whether lines come from standard input and go to standard output."""
        return self.format == LINES and self.input is None and self.output is None


Paragraphs = Annotated[
    bool,
    typer.Option(
        "--paragraphs",
        help="Translate a text sentence by sentence, and keep its spaces, line breaks and empty lines: --format text.",
    ),
]
Format: Any = Annotated[
    Literal[(LINES, *FORMATS)] | None,
    typer.Option(
        "--format",
        help="Of the input, and of the output: what is not text stays as it is.",
        show_default="what the name of a file tells, else lines",
    ),
]
Fields = Annotated[
    list[str],
    typer.Option(
        "--field",
        default_factory=list,
        metavar="NAME",
        help="A field of JSON lines, or a column of TSV, by its name in the first line or its number, which is "
        "translated; may be repeated.",
        show_default="none",
    ),
]
Language = Annotated[
    str,
    typer.Option(
        "--language",
        help="Of the input, such as de: for its ends of sentences and abbreviations.",
        show_default="that of --from, else en",
    ),
]
States = Annotated[
    list[str],
    typer.Option(
        "--state",
        default_factory=list,
        metavar="STATE",
        help="A state of units of XLIFF, such as needs-adaptation, of entries of PO, fuzzy, or of messages of Qt, "
        "unfinished, which are translated anew; may be repeated.",
        show_default="needs-translation, and of new and initial what is as its source; none of PO and Qt",
    ),
]
Everything = Annotated[
    bool,
    typer.Option(
        "--all", help="Translate units of XLIFF, entries of PO and messages of Qt anew, whatever translation they have."
    ),
]
TargetLanguage = Annotated[
    str,
    typer.Option(
        "--target-language",
        metavar="CODE",
        help="Of the output, such as de: for XLIFF that tells none, and for its forms of numbers.",
        show_default="that of --to, or of the model",
    ),
]
InputFile = Annotated[
    pathlib.Path | None,
    typer.Option(
        "--input", metavar="FILE", help="The file to translate; - is standard input.", show_default="standard input"
    ),
]
OutputFile = Annotated[
    pathlib.Path | None,
    typer.Option(
        "--output",
        metavar="FILE",
        help="Write to this file, and log the progress. If the command is killed, the same one goes on where it was. "
        "- is standard output.",
        show_default="standard output",
    ),
]


def takes_file_options(command: Callable) -> Callable:
    """Give a command the options of files in place of its parameter `files`: FileArguments."""
    options = [
        option_of("paragraphs", Paragraphs, False),
        option_of("format", Format, None),
        option_of("fields", Fields),
        option_of("language", Language, ""),
        option_of("input", InputFile, None),
        option_of("output", OutputFile, None),
        option_of("states", States),
        option_of("everything", Everything, False),
        option_of("output_language", TargetLanguage, ""),
    ]
    return takes("files", options, exit_codes()(file_arguments))(command)


def file_arguments(
    paragraphs: bool,
    format: str | None,
    fields: Sequence[str],
    language: str,
    input: pathlib.Path | None,
    output: pathlib.Path | None,
    states: Sequence[str] = (),
    output_language: str = "",
    everything: bool = False,
) -> FileArguments:
    """Return the options as FileArguments.

    Raises ConfigError if some contradict each other, and, like OSError, if the output cannot be a file there.
    """
    if paragraphs and format not in (None, TEXT):
        raise ConfigError(f"--paragraphs is --format text, and contradicts --format {format}: give one of them.")
    input, output = (None if path == STREAM else path for path in (input, output))
    format = known_format(TEXT if paragraphs else format, [path for path in (input, output) if path is not None])
    if fields and format not in WITH_FIELDS:
        raise ConfigError(f"--field is for --format {' and '.join(WITH_FIELDS)}: leave it out.")
    if (states or everything) and format not in WITH_STATES:
        raise ConfigError(
            f"--state and --all are for --format {' and '.join(WITH_STATES)}: leave them out, or give one."
        )
    if output_language and format not in WITH_LANGUAGE:
        raise ConfigError(
            f"--target-language is for --format {' and '.join(WITH_LANGUAGE)}: leave it out, or give one of them."
        )
    if output_language:
        check_code(output_language)
    if output is not None:
        check_plain_text("--output", output)
        check_replaceable(output)
        folder = behind_links(output).parent
        if not folder.is_dir():
            raise ConfigError(f"There is no folder {folder} for --output {output}: make it first.")
        if input is not None and output.exists() and os.path.samefile(input, output):
            raise ConfigError(f"--output is the file that is read, {input}: give another one.")
    return FileArguments(format, tuple(fields), language, input, output, tuple(states), output_language, everything)


def known_format(asked: str | None, paths: Sequence[pathlib.Path]) -> str:
    """Return the format that is asked for, or that the names of files tell; else that of lines.

    Raises ConfigError if a file has the name of another format, or of one that is not known.
    """
    told = [format for path in paths if (format := format_of_name(path))]
    format = asked or next(iter(told), LINES)
    for path in paths:
        if reason := why_not(path, format, asked is not None):
            raise ConfigError(reason)
    return format


class Road(NamedTuple):
    """How the parts of an input become those of an output.

    parts: reads them from a stream, whose name is for errors. rendered: returns the output of parts, the first of which
    has this number, counted from 1. raw: of a part, as it stands in the input. size: of a part, in sentences. beside:
    what was read from other files for the part that `parts` yielded last, such as its target prefix.
    """

    parts: Callable[[Iterable[bytes], str], Iterator[Any]]
    rendered: Callable[[list[Any], int], Iterable[str]]
    raw: Callable[[Any], str]
    size: Callable[[Any], float]
    beside: Callable[[], str] = str


def road_of_lines(
    output_lines: Callable[[list[str], int], Iterable[str]],
    checked: Callable[[Iterator[str]], Iterator[str]],
    beside: Callable[[], str] = str,
) -> Road:
    """Return the road of lines, each of which is a sentence: see `translate_lines`, and `beside` of a Road."""
    return Road(
        lambda stream, name: checked(read_lines(stream, name)),
        output_lines,
        lambda line: f"{line}\n",
        lambda line: 1,
        beside,
    )


def road_of_files(files: FileArguments, translator: DocumentTranslator, prefix: str) -> Road:
    """Return the road of a format. `prefix` begins the translation of the first sentence of the file."""
    numbers_of_texts: list[int] = []  # the number of the first part that has a sentence

    def noted_parts(stream: Iterable[bytes], name: str) -> Iterator[Part]:
        for number, part in enumerate(files.parts(stream, name), start=1):
            if not numbers_of_texts and isinstance(part, Field) and any(map(str.isalpha, part.passage.text)):
                numbers_of_texts.append(number)
            yield part

    def rendered(parts: list[Part], first: int) -> Iterator[str]:
        is_begin = bool(numbers_of_texts) and numbers_of_texts[0] in range(first, first + len(parts))
        passages = (part.passage for part in parts if isinstance(part, Field))
        documents = iter(translator.documents(passages, prefix if is_begin else ""))
        for part in parts:
            yield part.laid_out(next(documents).text) if isinstance(part, Field) else part

    return Road(
        noted_parts,
        rendered,
        lambda part: part.passage.raw if isinstance(part, Field) else part,
        lambda part: sum(map(len, part.passage.texts)) / SENTENCE if isinstance(part, Field) else 0,
    )


def noted(
    translate: Callable[..., Sequence[Translation]], cut_sentences: CutLines
) -> Callable[..., Sequence[Translation]]:
    """Return `translate` of sentences with numbers from 1, which then notes those whose translation was cut."""
    count = 0

    def translate_sentences(lines: list[str], **begins: list[str]) -> Sequence[Translation]:
        nonlocal count
        translations = translate(lines, first_line=count + 1, **begins)
        cut_sentences.note([[translation] for translation in translations], count + 1)
        count += len(translations)
        return translations

    return translate_sentences


def translate_files(road: Road, files: FileArguments, batch_size: int, work: Callable[[], dict[str, Any]]) -> None:
    """Translate the input to the output. `work` returns what decides the output beside the input.

    If reading the input raises, all parts before the error are translated and written first.
    """
    with contextlib.ExitStack() as stack:
        stream = standard_input() if files.input is None else stack.enter_context(open(files.input, "rb"))
        lines = ArrivingLines(stream)
        name = "the input" if files.input is None else str(files.input)
        packed = PACKED.get(files.format)
        output: StandardOutput | ResumedOutput
        progress: Progress | None
        if files.output is None:
            output, progress = StandardOutput(standard_output(), packed), None
            size = BATCHES_AT_ONCE * batch_size
        else:
            stack.enter_context(progress_logged())
            output = ResumedOutput(behind_links(files.output), work(), packed)
            progress = Progress(files.output, stream)
            size = BATCHES_OF_A_FILE * batch_size
        stack.callback(output.close)

        def write(parts: list[Any], notes: list[str]) -> None:
            output.write(notes, road.rendered(parts, output.done + 1))
            if progress:
                progress.note(map(road.raw, parts), sum(map(road.size, parts)))

        group, notes, group_size = [], [], 0.0
        try:
            for part in road.parts(lines, name):
                note = road.raw(part) + road.beside()
                if output.has(note):
                    if progress:
                        progress.skip(road.raw(part))
                    continue
                group.append(part)
                notes.append(note)
                group_size += road.size(part)
                if group_size > size or (files.output is None and lines.are_awaited()):
                    write(group, notes)
                    group, notes, group_size = [], [], 0.0
            output.check_end()
        except TranslatedError:
            write(group, notes)
            output.finish()
            raise
        except InputError as error:
            write(group, notes)
            raise output.explained(error) from None
        write(group, notes)
        output.finish()


class Progress:
    """Logs how much of a file is translated, how fast, and how long the rest takes."""

    def __init__(self, path: pathlib.Path, stream: BinaryIO):
        try:
            self._total = os.fstat(stream.fileno()).st_size  # of a pipe: 0
        except OSError:  # no file of the system
            self._total = 0
        self._path, self._begin, self._last = path, time.monotonic(), time.monotonic()
        self._before, self._bytes, self._sentences = 0, 0, 0.0

    def skip(self, raw: str) -> None:
        self._before += len(raw.encode("utf-8", "replace"))

    def note(self, raws: Iterable[str], sentences: float) -> None:
        """Count what is written; log it if the last time is long ago."""
        self._bytes += sum(len(raw.encode("utf-8", "replace")) for raw in raws)
        self._sentences += sentences
        now = time.monotonic()
        if now - self._last < PAUSE or not self._bytes:
            return
        self._last, seconds = now, now - self._begin
        speed = f"{self._sentences / seconds:.0f} sentences/s"
        if not self._total:
            log.info("%s: %s bytes of input, about %s", self._path, f"{self._bytes + self._before:,}", speed)
            return
        left = max(self._total - self._before - self._bytes, 0) * seconds / self._bytes
        share = min((self._before + self._bytes) / self._total, 1)
        log.info("%s: %.1f %%, about %s, %s left", self._path, 100 * share, speed, duration(left))
