"""What both commands share: quiet start-up, logging to stderr, and one sentence for a user's mistake."""

import contextlib
import logging
import os
import sys

import typer


def prepare_process():
    """Call before TensorFlow is imported. Its notices are off, unless asked for."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["KERAS_BACKEND"] = "tensorflow"  # whatever the shell or ~/.keras says: a SavedModel is TensorFlow's
    logging.basicConfig(format="%(levelname)s: %(message)s", stream=sys.stderr)
    logging.getLogger("export").setLevel(logging.INFO)
    logging.getLogger("tensorflow").setLevel(logging.ERROR)


@contextlib.contextmanager
def one_sentence_for(*mistakes):
    """Turn the errors that a user can cause, of these classes, into a line on stderr and exit code 1."""
    try:
        yield
    except mistakes as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from None
