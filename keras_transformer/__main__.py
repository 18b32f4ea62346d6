"""`python -m keras_transformer`, installed as `keras-transformer`: translate and score with a trained run.

The command imports TensorFlow itself, so that `--help` answers at once.
"""

from keras_transformer.commands.signals import end_on_signals

if __name__ == "__main__":
    end_on_signals()  # before the imports below, which take a second

from keras_transformer.commands.console import command_app, prepare_process
from keras_transformer.commands.explain import explain
from keras_transformer.commands.score import score
from keras_transformer.commands.translate import translate

app = command_app(no_args_is_help=True)


@app.callback()
def commands():
    """Translate and score with a Transformer that `python -m train` trained."""


for command in (translate, score, explain):
    app.command()(command)


def main():
    """Prepare the process, then run the command."""
    end_on_signals()  # the installed command begins here
    prepare_process()
    app()


if __name__ == "__main__":
    main()
