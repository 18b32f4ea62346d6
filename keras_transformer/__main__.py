"""`python -m keras_transformer`, installed as `keras-transformer`: translate with a trained run.

TensorFlow is imported by the command that needs it, so that `--help` answers at once.
"""

import codecs
import contextlib
import itertools
import logging
import os
import pathlib
import re
import signal
import sys
from typing import Annotated

import typer

from keras_transformer.config import ConfigError, SearchOptions
from keras_transformer.tokenizer import TokenizerError

BATCHES_AT_ONCE = 100  # how many batches of lines are read, sorted by length and translated before they are written

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


class InputError(ValueError):
    """Text that cannot be read; the message says where and why."""


@app.callback()
def commands():
    """A Transformer that was trained with `python -m train`."""


@app.command()
def translate(
    run: Annotated[pathlib.Path, typer.Argument(metavar="RUN", help="The run folder that training left.")],
    beam_size: Annotated[
        int, typer.Option(help="Hypotheses kept for each sentence; 1 is greedy search.")
    ] = SearchOptions.beam_size,
    length_penalty: Annotated[
        float, typer.Option(help="alpha in score = log P / ((5 + tokens) / 6)^alpha; 0 is none.")
    ] = SearchOptions.length_penalty,
    n_best: Annotated[
        int, typer.Option(help="Above 1: write up to so many different translations of each line, best first.")
    ] = SearchOptions.n_best,
    scores: Annotated[bool, typer.Option("--scores", help="Write `score<TAB>text`.")] = False,
    batch_size: Annotated[int, typer.Option(help="Sentences searched together.")] = 32,
    extra_length: Annotated[
        int, typer.Option(help="Longest output: as many tokens as the source has, and these.")
    ] = SearchOptions.extra_length,
    max_source_tokens: Annotated[
        int, typer.Option(help="Longer lines are cut to this, with a warning; at most 512.")
    ] = 512,
    xla: Annotated[
        bool, typer.Option("--xla/--no-xla", help="Compile the search: seconds once for each length, then faster.")
    ] = True,
):
    """Translate standard input, line by line.

    Writes one line to standard output for each line of input, an empty one for an empty one; both are UTF-8. A score
    is the natural log-probability of the translation over the length penalty: 0 or less, higher is better.

    With --n-best above 1 each translation is a line `number ||| text ||| score`, where number is that of the input
    line, counted from 1.
    """
    with one_sentence_for_mistakes():
        options = SearchOptions(beam_size, length_penalty, extra_length, n_best)
        from keras_transformer.translator import Translator

        settings = {"batch_size": batch_size, "max_source_tokens": max_source_tokens, "xla": xla}
        translator = Translator.load(run, options, **settings)
        at_once = 1 if sys.stdin.isatty() else BATCHES_AT_ONCE * batch_size
        first = 1
        for lines in groups(decoded_lines(sys.stdin.buffer), at_once):
            for number, translations in enumerate(translator.translate_n_best(lines, first_line=first), first):
                sys.stdout.buffer.write(written(number, translations, n_best, scores).encode("utf-8"))
            sys.stdout.buffer.flush()
            first += len(lines)


def decoded_lines(stream):
    """The lines of a binary stream of UTF-8, ended by LF or CRLF. Raises InputError that names the line."""
    for number, line in enumerate(stream, 1):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"Line {number} of the input is not UTF-8: its byte {error.start + 1} is 0x{line[error.start]:02x}. "
                "Convert it first, for example with `iconv -f LATIN1 -t UTF-8`."
            ) from None


def groups(lines, size):
    """Lists of up to `size` lines."""
    lines = iter(lines)
    while group := list(itertools.islice(lines, size)):
        yield group


def written(number, translations, n_best, with_score):
    """What input line `number` becomes in the output; a line break inside a translation becomes a space."""
    found = [(on_one_line(translation.text), f"{translation.score:.4f}") for translation in translations]
    if n_best > 1:
        return "".join(f"{number} ||| {text} ||| {score}\n" for text, score in found)
    text, score = found[0]
    return f"{score}\t{text}\n" if with_score else f"{text}\n"


def on_one_line(text):
    return re.sub(r"[\r\n]+", " ", text)


@contextlib.contextmanager
def one_sentence_for_mistakes():
    """Turn the errors that a user can cause into a line on stderr and exit code 1."""
    try:
        yield
    except (ConfigError, TokenizerError, InputError, OSError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from None


def main():
    """The entry point: settings that concern the whole process, then the command."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # not even that there is no GPU
    os.environ["KERAS_BACKEND"] = "tensorflow"  # whatever the shell or ~/.keras says: the Translator compiles with it
    logging.basicConfig(format="%(levelname)s: %(message)s", stream=sys.stderr)
    leave_quietly()
    app()


def leave_quietly():
    """Let Ctrl-C, and a reader such as `head` that has enough, end the process without a traceback.

    The system's own handling also ends a long compilation, during which Python would not hear the signal.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else whoever started this chose to ignore it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


if __name__ == "__main__":
    main()
