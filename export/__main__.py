"""`python -m export RUN --to FOLDER`: write a version, read it back, compare it with the Translator, publish it.

The functions that need TensorFlow import it themselves, so that `--help` answers at once.
"""

from keras_transformer.signals import end_on_interrupt, signals_raise

if __name__ == "__main__":
    end_on_interrupt()  # before the imports below, which take a second

import itertools
import logging
import os
import pathlib
from typing import Annotated

import typer

from export.versions import ExportError, publish, unfinished_version
from keras_transformer.batching import LONGEST_SOURCE
from keras_transformer.config import SearchOptions
from keras_transformer.console import command_app, exit_codes, prepare_process, quiet_start
from keras_transformer.files import read_lines
from keras_transformer.options import BeamSize, ExtraLength, LengthPenalty, MaxSourceTokens, RunPath
from keras_transformer.run_folder import RunFolder

MOST_SENTENCES = 500  # to compare on

log = logging.getLogger("export")
app = command_app()


@app.command(no_args_is_help=True)
def export(
    run: RunPath,
    to: Annotated[
        pathlib.Path, typer.Option(metavar="FOLDER", help="The folder of numbered versions that a server watches.")
    ],
    beam_size: BeamSize = SearchOptions.beam_size,
    length_penalty: LengthPenalty = SearchOptions.length_penalty,
    extra_length: ExtraLength = SearchOptions.extra_length,
    max_source_tokens: MaxSourceTokens = LONGEST_SOURCE,
    check: Annotated[
        pathlib.Path | None,
        typer.Option(
            metavar="FILE",
            help=f"Source sentences, one per line, to compare on: the first {MOST_SENTENCES}. "
            "Without it, RUN/validation.src.txt.",
        ),
    ] = None,
    is_checked: Annotated[bool, typer.Option(" /--no-check", help="Publish without comparing.")] = True,
):
    """Write RUN as FOLDER/1, FOLDER/2, ...: a SavedModel that `tensorflow_model_server` serves.

    Its signature `serving_default` takes `text`, strings of shape (batch), and returns `translation`, strings, and
    `score`, float32: natural log-probability over the length penalty. It contains the tokenizer and needs neither
    Python nor XLA.

    The version is read back and compared with translating from RUN. If they differ by more than rounding, nothing is
    published.

    To translate with an export alone: `python -m export.translate FOLDER < in.txt > out.txt`; for its options,
    `python -m export.translate --help`.
    """
    with exit_codes():
        if check and not is_checked:
            raise ExportError("--check FILE and --no-check contradict each other: give one of them.")
        sentences = (check or RunFolder(run).check_lines) if is_checked else None
        options = SearchOptions(beam_size, length_penalty, extra_length)
        print(export_run(run, to, options, max_source_tokens, sentences))


def export_run(
    run: str | os.PathLike,
    folder: str | os.PathLike,
    options: SearchOptions,
    max_source_tokens: int,
    sentences: pathlib.Path | None,
) -> pathlib.Path:
    """Export a run folder as the next version in `folder`. Return the path of the version.

    `sentences` is a file of source sentences on which the version must translate as the Translator does; with None
    nothing is compared. Raises UserError if the run cannot be opened, if the version cannot be written or if it
    translates differently; then nothing is published.
    """
    with quiet_start():
        from export.check import refuse_xla
        from export.saved_model import write_saved_model
        from export.serving import ServedTranslator
        from keras_transformer.translator import Translator, load_run

    transformer, tokenizer = load_run(run)
    lines = read_sentences(sentences) if sentences else []
    translator = Translator(transformer, tokenizer, options, max_source_tokens=max_source_tokens)
    with quiet_start():  # the tokenizer prints a notice
        served = ServedTranslator(transformer, tokenizer, options, translator.max_source_tokens)
    with signals_raise(), unfinished_version(folder) as unfinished:
        write_saved_model(served, tokenizer, unfinished)
        refuse_xla(unfinished)
        if lines:
            refuse_difference(unfinished, translator, lines)
        return publish(unfinished)


def read_sentences(path: pathlib.Path) -> list[str]:
    """Return the sentences to compare on. Raises ExportError if there are none."""
    if not path.is_file():
        raise ExportError(
            f"There is no file {path} to compare the export on: give sentences with --check FILE, "
            "or publish without comparing with --no-check."
        )
    with path.open("rb") as stream:
        lines = list(itertools.islice(read_lines(stream, path), MOST_SENTENCES))
    if not any(line.strip() for line in lines):
        raise ExportError(f"{path} has no sentence to compare the export on.")
    return lines


def refuse_difference(version: pathlib.Path, translator, lines: list[str]) -> None:
    """Print how many lines the version and the Translator agree on. Raises ExportError if a line differs."""
    from export.check import compare
    from export.exported import open_quietly

    log.info("written; comparing it with the Translator on %d lines", len(lines))
    comparison = compare(open_quietly(version), translator, lines)
    print(comparison)
    if comparison.differences:
        raise ExportError(
            f"The export does not translate as the run does, first in {comparison.differences[0]}. "
            "Nothing was published."
        )


def main():
    """Prepare the process, then run the command."""
    prepare_process()
    log.setLevel(logging.INFO)
    app(prog_name="python -m export")


if __name__ == "__main__":
    main()
