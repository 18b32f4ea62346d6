"""`keras-transformer translate-export FOLDER`: translate with an export alone, without its run folder.

The command imports TensorFlow itself, so that `--help` answers at once.
"""

from keras_transformer.commands.signals import end_on_signals

if __name__ == "__main__":
    end_on_signals()  # before the imports below, which take a second

import pathlib
from typing import TYPE_CHECKING, Annotated

import typer

from keras_transformer.commands.console import (
    CutLines,
    command_app,
    exit_codes,
    output_line,
    program,
    translate_lines,
)
from keras_transformer.commands.files import (
    LINES,
    FileArguments,
    noted,
    road_of_files,
    road_of_lines,
    takes_file_options,
    translate_files,
)
from keras_transformer.commands.options import BatchSize, WithConfidence, WithScores
from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.files import resolved, sha256_of_folder
from keras_transformer.ground.imports import UNUSED_IN_TRANSLATION, quiet_imports
from keras_transformer.pieces.batching import BATCH_SIZE
from keras_transformer.runs.lite_folder import is_lite_folder
from keras_transformer.text.documents import DocumentTranslator

from .versions import ExportError, find_version

if TYPE_CHECKING:
    from keras_transformer.lite.translator import LiteTranslator

    from .graph.exported import ExportedTranslator

app = command_app()


@app.command(no_args_is_help=True)
@takes_file_options
def translate(
    folder: Annotated[
        pathlib.Path,
        typer.Argument(
            metavar="FOLDER", help="The folder of an export, for its newest version; or one version; or a LiteRT model."
        ),
    ],
    files: FileArguments,
    scores: WithScores = False,
    confidence: WithConfidence = False,
    batch_size: BatchSize = BATCH_SIZE,
):
    """Translate lines, paragraphs or a file with an export alone.

    Writes one line to standard output per line of input, an empty line for an empty line; both are UTF-8. The options
    of the search, and the length to which longer lines are truncated, were set by `keras-transformer export`.
    """
    with exit_codes():
        if files.format != LINES and (scores or confidence):
            raise ConfigError("--scores and --confidence are for lines: leave them out.")
        export = folder
        if files.output is not None:
            export = export_at(folder)  # now, since another version may come
            if resolved(files.output).is_relative_to(resolved(export)):
                raise ConfigError(f"--output {files.output} is inside the export {export}: name a file elsewhere.")
        translator = translator_of(export, batch_size)
        cut_lines = CutLines("line" if files.format == LINES else "sentence")

        def output_lines(lines: list[str], first_line: int) -> list[str]:
            translations = translator.translate(lines, first_line)
            cut_lines.note(([best] for best in translations), first_line)
            return [output_line(best, scores, confidence) for best in translations]

        def work():
            kept = {"format": files.format, "fields": files.fields, "language": files.language}
            return {"export": sha256_of_folder(export), "scores": scores, "confidence": confidence, **kept}

        with cut_lines.warning("export the run again with a larger --extra-length"):
            if files.is_plain:
                translate_lines(output_lines, batch_size)
            elif files.format == LINES:
                translate_files(road_of_lines(output_lines, iter), files, batch_size, work)
            else:
                documents = DocumentTranslator(
                    noted(translator.translate, cut_lines), files.language, translator.are_too_long
                )
                translate_files(road_of_files(files, documents), files, batch_size, work)


def export_at(folder: pathlib.Path) -> pathlib.Path:
    """Return the folder of a LiteRT model or of a version, the newest one in `folder`. Raises ExportError if none."""
    return folder if is_lite_folder(folder) else find_version(folder)


def translator_of(folder: pathlib.Path, batch_size: int) -> "ExportedTranslator | LiteTranslator":
    """Return what translates with an export: a LiteRT model, or a SavedModel. Raises UserError if there is none."""
    if batch_size < 1:  # which a LiteRT model does not ask for
        raise ExportError(f"--batch-size is {batch_size}; it must be at least 1.")
    export = export_at(folder)
    with quiet_imports(without=UNUSED_IN_TRANSLATION):
        if is_lite_folder(export):
            from keras_transformer.lite.translator import LiteTranslator

            return LiteTranslator(export)
        from .graph.exported import open_quietly

        return open_quietly(export, batch_size)


main = program(app)


if __name__ == "__main__":
    main()
