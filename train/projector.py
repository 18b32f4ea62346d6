"""`keras-transformer projector RUN`: write the embeddings of a trained run for TensorBoard's projector.

Training does so too, at its end. TensorFlow is imported by the command, so that `--help` answers at once.
"""

from keras_transformer.commands.signals import end_on_signals

if __name__ == "__main__":
    end_on_signals()  # before the imports below, which take a second


from keras_transformer.commands.console import command_app, exit_codes, program
from keras_transformer.commands.options import RunName
from keras_transformer.commands.runs import opened
from keras_transformer.ground.imports import quiet_imports
from keras_transformer.runs.run_folder import RunFolder

app = command_app()


@app.command()
def write_embeddings(run: RunName):
    """Write a run's embeddings for TensorBoard's tab PROJECTOR.

    They are those of all pieces, with the pieces as labels. Prints the folder to open with `tensorboard --logdir`.
    """
    with exit_codes():
        with quiet_imports():
            from keras_transformer.inspection.projector import write_projector
            from keras_transformer.runs.saved_run import load_run
        folder = RunFolder(opened(run))
        transformer, tokenizer = load_run(folder.path)
        write_projector(folder.tensorboard, transformer, tokenizer.pieces())
        print(folder.tensorboard)


main = program(app)


if __name__ == "__main__":
    main()
