"""`python -m train.projector RUN`: write the embeddings of a trained run for TensorBoard's projector.

Training does so too, at its end. TensorFlow is imported by the command, so that `--help` answers at once.
"""

from keras_transformer.commands.signals import end_on_signals

if __name__ == "__main__":
    end_on_signals()  # before the imports below, which take a second

from keras_transformer.commands.console import command_app, exit_codes, prepare_process, quiet_imports
from keras_transformer.commands.options import RunPath
from keras_transformer.run_folder import RunFolder

app = command_app()


@app.command()
def main(run: RunPath):
    """Write the embeddings of all pieces, with the pieces as labels, for the tab PROJECTOR of TensorBoard.

    Prints the folder to open with `tensorboard --logdir`.
    """
    prepare_process()
    with exit_codes():
        with quiet_imports():
            from keras_transformer.inspection.projector import write_projector
            from keras_transformer.saved_run import load_run
        transformer, tokenizer = load_run(run)
        folder = RunFolder(run).tensorboard
        write_projector(folder, transformer, tokenizer.pieces())
        print(folder)


if __name__ == "__main__":
    app()
