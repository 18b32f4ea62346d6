"""What both commands of this folder share: one sentence, and an exit code, for each way in which they can end early."""

import contextlib

import typer

from keras_transformer.config import ConfigError
from keras_transformer.console import one_sentence_for, prepare_process
from keras_transformer.tokenizer import TokenizerError
from train.checkpoints import CheckpointError
from train.interruption import EXIT_CODE, DivergenceError, Interrupted, WorkerLost
from train.sources.split import CorpusError

LOG = {"log_format": "%(asctime)s %(message)s", "datefmt": "%H:%M:%S", "level": "INFO"}


@contextlib.contextmanager
def command():
    """Around a command: exit code 1 and a sentence for a user's mistake, 75 for a training that can go on later."""
    prepare_process(**LOG)
    with one_sentence_for(ConfigError, TokenizerError, CheckpointError, CorpusError, DivergenceError):
        try:
            yield
        except (Interrupted, WorkerLost) as reason:
            typer.echo(reason, err=True)
            raise typer.Exit(EXIT_CODE) from None
