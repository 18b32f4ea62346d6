"""`python -m export RUN --to FOLDER` exports a trained run; `python -m export translate FOLDER` translates with it."""

import logging
import signal
import sys

from keras_transformer.console import prepare_process


def main():
    """Dispatch on the first word: what does not begin with `translate` is an export."""
    prepare_process()
    logging.getLogger("export").setLevel(logging.INFO)
    arguments = sys.argv[1:]
    if arguments[:1] == ["translate"]:
        from export.translate_command import app

        if hasattr(signal, "SIGPIPE"):
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader such as `head` that has enough is no error
        app(arguments[1:], prog_name="python -m export translate")
    else:
        from export.command import app

        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # an exception, so that nothing half-written stays
        app(arguments, prog_name="python -m export")


if __name__ == "__main__":
    main()
