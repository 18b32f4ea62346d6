"""`keras-transformer translate-export FOLDER`: translate with an export alone, without its run folder.

The command imports TensorFlow itself, so that `--help` answers at once.
"""

from keras_transformer.commands.signals import end_on_signals

if __name__ == "__main__":
    end_on_signals()  # before the imports below, which take a second

import pathlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keras_transformer.commands.console import command_app, exit_codes, program
from keras_transformer.commands.files import FileArguments, takes_file_options
from keras_transformer.commands.options import (
    BatchSize,
    Samples,
    TextArguments,
    WithConfidence,
    WithScores,
    takes_served_options,
    takes_text_options,
)
from keras_transformer.commands.output_files import check_not_read
from keras_transformer.commands.translate_input import AskedText, Written, deciding, translate_input
from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.files import resolved, sha256_of_folder
from keras_transformer.ground.imports import UNUSED_IN_TRANSLATION, quiet_imports
from keras_transformer.pieces.batching import BATCH_SIZE
from keras_transformer.runs.lite_folder import is_lite_folder
from keras_transformer.runs.versions import find_export

from .versions import ExportError

if TYPE_CHECKING:
    from keras_transformer.lite.translator import LiteTranslator
    from keras_transformer.translation.exported import ExportedTranslator

app = command_app()


@app.command(no_args_is_help=True)
@takes_file_options
@takes_served_options()
@takes_text_options()
def translate(
    folder: Annotated[
        pathlib.Path,
        typer.Argument(
            metavar="FOLDER", help="The folder of an export, for its newest version; or one version; or a LiteRT model."
        ),
    ],
    files: FileArguments,
    search: dict,
    text: TextArguments,
    scores: WithScores = False,
    confidence: WithConfidence = False,
    mbr: Samples = 0,
    batch_size: BatchSize = BATCH_SIZE,
):
    """Translate lines, paragraphs or a file with an export alone.

    Writes one line to standard output per line of input, an empty line for an empty line; both are UTF-8. Options of
    the search that are left out, and the length to which longer lines are truncated, were set by `keras-transformer
    export`. A LiteRT model takes fewer of them, and says which.
    """
    with exit_codes():
        written = Written(search.get("n_best", 1), scores, confidence)
        written.check(text, files)
        asked = AskedText(text)
        export = folder
        if files.output is not None:
            check_not_read("--output", files.output, text.files)
            export = find_export(folder)  # now, since another version may come
            if resolved(files.output).is_relative_to(resolved(export)):
                raise ConfigError(f"--output {files.output} is inside the export {export}: name a file elsewhere.")
        translator = translator_of(export, batch_size).with_options(search)

        def work() -> dict[str, Any]:
            return {"export": sha256_of_folder(export), **search, "mbr": mbr}

        advice = "export the run again with a larger --extra-length"
        translate_input(deciding(translator, mbr, confidence), asked, files, written, batch_size, work, advice)


def translator_of(folder: pathlib.Path, batch_size: int) -> "ExportedTranslator | LiteTranslator":
    """Return what translates with an export: a LiteRT model, or a SavedModel. Raises UserError if there is none."""
    if batch_size < 1:  # which a LiteRT model does not ask for
        raise ExportError(f"--batch-size is {batch_size}; it must be at least 1.")
    export = find_export(folder)
    with quiet_imports(without=UNUSED_IN_TRANSLATION):
        if is_lite_folder(export):
            from keras_transformer.lite.translator import LiteTranslator

            return LiteTranslator(export)
        from keras_transformer.translation.exported import open_quietly

        return open_quietly(export, batch_size)


main = program(app)


if __name__ == "__main__":
    main()
