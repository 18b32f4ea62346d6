"""What every command shares: its settings and exit codes, and lines of UTF-8 in and out."""

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO, TextIO

import typer

from keras_transformer.commands.arriving_lines import ArrivingLines
from keras_transformer.commands.signals import end_on_signals
from keras_transformer.ground.errors import InputError, Interrupted, UserError, first_line_of
from keras_transformer.ground.files import on_one_line, read_lines
from keras_transformer.pieces.translation import Translation

log = logging.getLogger("keras_transformer")

BATCHES_AT_ONCE = 25
CUT_LINES_NAMED = 10  # at most, in a warning
OUT_OF_MEMORY = ("MemoryError", "ResourceExhaustedError")  # of TensorFlow, which is not imported for it
WITH_TIME = "%(asctime)s %(message)s", "%H:%M:%S"  # of a log: the form of a line and of its time
INTERRUPTED = 75  # the exit code EX_TEMPFAIL of sysexits.h: not finished; run the same command again


def prepare_process(is_long: bool = False) -> None:
    """Set what concerns the whole process; call it before TensorFlow is imported. Logs go to stderr.

    `is_long`: log the progress too, each line with its time of day; otherwise only warnings.
    """
    if sys.stderr is None:  # a service manager may have closed it: then what is written there is lost
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    if hasattr(sys.stdout, "reconfigure"):  # texts of any language, whatever the locale is
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")  # names of files that are not UTF-8 too
    logs = os.fdopen(os.dup(2), "w", encoding="utf-8", errors="backslashreplace")  # `quiet_imports` hides no log
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # hides even the notice that there is no GPU
    os.environ["KERAS_BACKEND"] = "tensorflow"  # over the shell and ~/.keras: commands compile with it
    line, time = WITH_TIME if is_long else ("%(levelname)s: %(message)s", None)
    logging.basicConfig(level=logging.INFO if is_long else logging.WARNING, stream=logs, format=line, datefmt=time)
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    logging.getLogger("absl").setLevel(logging.ERROR)


def program(
    app: typer.Typer,
    is_long: bool = False,
    ends: Callable[[], None] = end_on_signals,
    log: logging.Logger | None = None,
) -> Callable[..., None]:
    """Return `main(prog_name, arguments)` of a command: it prepares the process, then runs the command.

    is_long: as for `prepare_process`. ends: what Ctrl-C and a closed pipe do. log: one that tells of its progress.
    """

    def main(prog_name: str | None = None, arguments: Sequence[str] | None = None) -> None:
        ends()
        prepare_process(is_long)
        if log:
            log.setLevel(logging.INFO)
        app(arguments, prog_name=prog_name)

    return main


@contextlib.contextmanager
def progress_logged() -> Iterator[None]:
    """Within, a command whose work turns out to be long logs its progress too, each line with its time of day."""
    root = logging.getLogger()
    level, formatters = root.level, [(handler, handler.formatter) for handler in root.handlers]
    root.setLevel(logging.INFO)
    for handler in root.handlers:
        handler.setFormatter(logging.Formatter(*WITH_TIME))
    try:
        yield
    finally:
        root.setLevel(level)
        for handler, formatter in formatters:
            handler.setFormatter(formatter)


def command_app(**settings) -> typer.Typer:
    """Return a Typer application with the settings of every command: plain help, no completion, no pretty tracebacks.

    `settings` are further arguments of Typer.
    """
    return typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, **settings)


@contextlib.contextmanager
def exit_codes() -> Iterator[None]:
    """Within, an exception that a user can cause ends the command with a message on stderr and no traceback.

    UserError, OSError and exhausted memory exit with code 1, Interrupted with code 75.
    """
    try:
        yield
    except UserError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from None
    except OSError as error:
        typer.echo(f"Error: {first_line_of(error)}", err=True)
        raise typer.Exit(1) from None
    except Interrupted as reason:
        typer.echo(reason, err=True)
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        if type(error).__name__ not in OUT_OF_MEMORY:
            raise
        typer.echo(
            f"Error: Memory was exhausted: {first_line_of(error)} Take fewer sentences at once: a smaller --batch-size "
            "or, in the configuration of a training, translation.batch_size.",
            err=True,
        )
        raise typer.Exit(1) from None


def translate_lines(
    output_lines: Callable[[list[str], int], Iterable[str]],
    batch_size: int,
    checked: Callable[[Iterator[str]], Iterator[str]] = iter,
) -> None:
    """Translate standard input to standard output, both UTF-8.

    `output_lines` is a function of a list of lines and the number of the first of them, counted from 1. It returns
    what to write for them, which a terminal shows piece by piece. `checked` yields all lines of the input as they come,
    and may raise UserError. If that, or reading a line, raises, all lines before it are translated and written first.
    """
    stdin, stdout = ArrivingLines(standard_input()), standard_output()
    first_line = 1
    for lines in groups(checked(read_lines(stdin, "the input")), stdin.are_awaited, batch_size):
        for text in output_lines(lines, first_line):
            stdout.write(text.encode("utf-8"))
            if stdout.isatty():
                stdout.flush()
        stdout.flush()
        first_line += len(lines)


def standard_input() -> BinaryIO:
    """Return standard input, of bytes. Raises InputError if it is closed, as after `<&-`."""
    return _buffer_of(sys.stdin, "input")


def standard_output() -> BinaryIO:
    """Return standard output, of bytes. Raises InputError if it is closed, as after `>&-`."""
    return _buffer_of(sys.stdout, "output")


def _buffer_of(stream: TextIO | None, name: str) -> BinaryIO:
    if stream is None:
        raise InputError(f"Standard {name} is closed: give a file, a pipe or /dev/null.")
    return stream.buffer


def groups(lines: Iterable[str], are_awaited: Callable[[], bool], batch_size: int) -> Iterator[list[str]]:
    """Yield lists of lines that are sorted by length and translated together: many batches, or what has come.

    are_awaited: whether the next line has not come, as if somebody types or waits for an answer. If `lines` raises an
    exception, the lines before it are yielded first.
    """
    group = []
    try:
        for line in lines:
            group.append(line)
            if len(group) == BATCHES_AT_ONCE * batch_size or are_awaited():
                yield group
                group = []
    except (UserError, OSError):
        if group:
            yield group
        raise
    if group:
        yield group


class CutLines:
    """Remembers the lines, or other units, whose translation ended at its limit, and warns of them in the end.

    It warns of those too that required phrases made improbable.
    """

    def __init__(self, unit: str = "line"):
        self.unit, self.numbers, self.forced = unit, [], []

    def note(self, outputs: Iterable[Sequence[Translation]], first_line: int) -> None:
        """Remember which of these lines, the first of which has this number, have a translation that was cut."""
        for number, translations in enumerate(outputs, first_line):
            if any(translation.is_cut for translation in translations):
                self.numbers.append(number)
            if any(translation.is_forced for translation in translations):
                self.forced.append(number)

    @contextlib.contextmanager
    def warning(self, advice: str, *others: Callable[[], None]) -> Iterator[None]:
        """Within, lines are translated. Then `warn`, and call the others, even if reading the next line fails."""
        try:
            yield
        finally:
            self.warn(advice)
            for warn in others:
                warn()

    def warn(self, advice: str) -> None:
        """Log how many lines there are, and the numbers of the first ones."""
        for numbers, what, to_do in (
            (self.numbers, "were cut at their limit, and may lack their end", advice),
            (self.forced, "required phrases were forced on, and may make no sense", "give other forms of them"),
        ):
            if numbers:
                first = ", ".join(map(str, numbers[:CUT_LINES_NAMED]))
                more = ", ..." if len(numbers) > CUT_LINES_NAMED else ""
                log.warning(
                    "translations that %s: %d (%s numbers: %s%s); %s", what, len(numbers), self.unit, first, more, to_do
                )


def output_line(translation: Translation, with_score: bool, with_confidence: bool = False) -> str:
    """Return a translation as a line of output: `text`, after `score<TAB>` and `confidence<TAB>` if they are wanted.

    Raises UserError if there is no confidence.
    """
    score = f"{translation.score:.4f}\t" * with_score
    confidence = f"{confidence_of(translation):.3f}\t" if with_confidence else ""
    return f"{score}{confidence}{on_one_line(translation.text)}\n"


def confidence_of(translation: Translation) -> float:
    """Return the confidence of a translation. Raises UserError if what translated it is not calibrated."""
    if translation.confidence is None:
        raise UserError(
            "--confidence needs a calibration, which this run or export lacks: run `keras-transformer calibrate RUN` "
            "first, and then export the run again if this is an export."
        )
    return translation.confidence
