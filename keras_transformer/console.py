"""What every command of this project shares: a quiet start, text as UTF-8 lines, one sentence for a mistake."""

import codecs
import contextlib
import itertools
import logging
import os
import re
import sys
import tempfile

import typer

BATCHES_AT_ONCE = 100


class InputError(ValueError):
    """Text that cannot be read; the message says where and why."""


def prepare_process(log_format="%(levelname)s: %(message)s", **log_options):
    """Settings that concern the whole process; call before TensorFlow is imported. Logs go to stderr."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # not even that there is no GPU
    os.environ["KERAS_BACKEND"] = "tensorflow"  # whatever the shell or ~/.keras says: commands compile with it
    logging.basicConfig(format=log_format, stream=sys.stderr, **log_options)
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    logging.getLogger("absl").setLevel(logging.ERROR)


@contextlib.contextmanager
def quiet_start():
    """Within, hold back what native libraries print to stderr while they load; an exception brings it out.

    TensorFlow 2.21 greets with lines that no log level silences.
    """
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except Exception:
            held.seek(0)
            os.write(stderr, held.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)


@contextlib.contextmanager
def one_sentence_for(*mistakes):
    """Turn the errors that a user can cause, of these classes, into a line on stderr and exit code 1."""
    try:
        yield
    except mistakes as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from None


def read_lines(stream, name):
    """The lines of a binary stream of UTF-8, ended by LF or CRLF: a generator of str.

    Raises InputError, with `name` and the number of the line, for bytes that are not UTF-8.
    """
    for number, line in enumerate(stream, start=1):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"Line {number} of {name} is not UTF-8: its byte {error.start + 1} is 0x{line[error.start]:02x}. "
                "Convert it first, for example with `iconv -f LATIN1 -t UTF-8`."
            ) from None


def groups(lines, stream, batch_size):
    """Lists of as many lines as are sorted by length and translated before they are written; one from a terminal."""
    lines, size = iter(lines), 1 if stream.isatty() else BATCHES_AT_ONCE * batch_size
    while group := list(itertools.islice(lines, size)):
        yield group


def on_one_line(text):
    """A line break inside a translation becomes a space, so that a line stays a line."""
    return re.sub(r"[\r\n]+", " ", text)
