"""What both commands of this folder share: quiet start-up, logging, and one sentence for a user's mistake."""

import contextlib
import logging
import os
import sys


def prepare_process():
    """Logging to stderr; TensorFlow's start-up notices off, unless asked for. Call before TensorFlow is imported."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["KERAS_BACKEND"] = "tensorflow"  # whatever the shell or ~/.keras says: this folder is TensorFlow's
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    logging.getLogger("absl").setLevel(logging.ERROR)


@contextlib.contextmanager
def one_sentence_for_mistakes():
    """Turn what a user can cause into a line on stderr: exit code 1 for a mistake, 75 for a training told to stop."""
    from keras_transformer.config import ConfigError
    from keras_transformer.tokenizer import TokenizerError
    from train.checkpoints import CheckpointError
    from train.interruption import EXIT_CODE, DivergenceError, Interrupted
    from train.sources.split import CorpusError

    try:
        yield
    except Interrupted as interruption:
        print(interruption, file=sys.stderr)
        raise SystemExit(EXIT_CODE) from None
    except (ConfigError, TokenizerError, CheckpointError, CorpusError, DivergenceError) as error:
        print(error, file=sys.stderr)
        raise SystemExit(1) from None
