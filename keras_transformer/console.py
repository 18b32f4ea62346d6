"""What every command of this project shares: a quiet start, text as UTF-8 lines, one sentence for a mistake."""

import contextlib
import itertools
import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator

import typer

from keras_transformer.errors import Interrupted, UserError

BATCHES_AT_ONCE = 100
INTERRUPTED = 75  # the exit code EX_TEMPFAIL of sysexits.h: not finished; run the same command again


def prepare_process(is_long: bool = False) -> None:
    """Settings that concern the whole process; call it before TensorFlow is imported. Logs go to stderr.

    `is_long`: log the progress too, each line with its time of day; otherwise only warnings.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # not even that there is no GPU
    os.environ["KERAS_BACKEND"] = "tensorflow"  # whatever the shell or ~/.keras says: commands compile with it
    log_format = (
        {"format": "%(asctime)s %(message)s", "datefmt": "%H:%M:%S"}
        if is_long
        else {"format": "%(levelname)s: %(message)s"}
    )
    logging.basicConfig(level=logging.INFO if is_long else logging.WARNING, stream=sys.stderr, **log_format)
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
def exit_codes() -> Iterator[None]:
    """Within, an exception that a user can cause ends the command with a message on stderr and no traceback.

    UserError and OSError exit with code 1, Interrupted with code 75.
    """
    try:
        yield
    except (UserError, OSError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from None
    except Interrupted as reason:
        typer.echo(reason, err=True)
        raise typer.Exit(INTERRUPTED) from None


def groups(lines, stream, batch_size):
    """Lists of as many lines as are sorted by length and translated before they are written; one from a terminal."""
    lines, size = iter(lines), 1 if stream.isatty() else BATCHES_AT_ONCE * batch_size
    while group := list(itertools.islice(lines, size)):
        yield group


def on_one_line(text):
    """A line break inside a translation becomes a space, so that a line stays a line."""
    return re.sub(r"[\r\n]+", " ", text)
