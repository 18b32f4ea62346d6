"""`keras-transformer export RUN --to FOLDER`: write an export, compare it with the Translator, publish it.

The functions that need TensorFlow import it themselves, so that `--help` answers at once.
"""

from keras_transformer.commands.signals import end_on_interrupt, signals_raise

if __name__ == "__main__":
    end_on_interrupt()  # before the imports below, which take a second

import enum
import itertools
import logging
import os
import pathlib
from collections.abc import Sequence
from typing import Annotated

import typer

from keras_transformer.batching import LONGEST_SOURCE
from keras_transformer.commands.console import command_app, exit_codes, prepare_process, quiet_imports
from keras_transformer.commands.options import (
    MaxSourceTokens,
    Precision,
    RunPath,
    SearchArguments,
    takes_search_options,
)
from keras_transformer.decoding.options import RUN_OPTIONS, SearchOptions
from keras_transformer.files import read_lines
from keras_transformer.run_folder import RunFolder

from .versions import ExportError, publish, refuse_version, unfinished_version

MOST_SENTENCES = 500  # to compare on

log = logging.getLogger("export")
app = command_app()


class Format(enum.StrEnum):
    SAVED_MODEL = "saved_model"
    CTRANSLATE2 = "ctranslate2"


@app.command(no_args_is_help=True)
@takes_search_options(*RUN_OPTIONS)
def export(
    run: RunPath,
    to: Annotated[
        pathlib.Path,
        typer.Option(
            metavar="FOLDER",
            help="The folder of numbered versions that a server watches; with --format ctranslate2, the model's own.",
        ),
    ],
    format: Annotated[Format, typer.Option(help="What to write.")] = Format.SAVED_MODEL,
    quantization: Annotated[
        str | None,
        typer.Option(metavar="TYPE", help="With --format ctranslate2: the type of its weights, for example int8."),
    ] = None,
    *,
    search: SearchArguments,
    max_source_tokens: MaxSourceTokens = LONGEST_SOURCE,
    precision: Precision = "float32",
    alignment_layer: Annotated[
        int | None,
        typer.Option(
            help="The decoder block, counted from 1, whose attention aligns words in the signature translate.",
            show_default="the last but one",
        ),
    ] = None,
    check: Annotated[
        pathlib.Path | None,
        typer.Option(
            metavar="FILE",
            help=f"Source sentences, one per line, to compare on: the first {MOST_SENTENCES}. "
            "Without it, RUN/validation.src.txt.",
        ),
    ] = None,
    no_check: Annotated[bool, typer.Option("--no-check", help="Publish without comparing.")] = False,
    signatures: Annotated[
        list[str] | None,
        typer.Option(
            "--signature",
            metavar="NAME",
            help="Write this signature alone; repeat the option for several. serving_default alone loads sooner.",
            show_default="all five",
        ),
    ] = None,
):
    """Export a run, and check that the export translates alike.

    Writes RUN as FOLDER/1, FOLDER/2, ...: a SavedModel that `tensorflow_model_server` serves. Its signature
    `serving_default` takes `text`, strings of shape (batch), and returns `translation`, strings, and `score`, float32:
    natural log-probability over the length penalty, with the coverage penalty added. `translate`, `score`, `tokenize`
    and `explain` answer more: see docs/serving.md. The graph contains the tokenizer and needs neither Python nor XLA.

    The version is read back, and its translations in Python, in TensorFlow's C API and in the local server are compared
    with those of RUN. If they differ by more than rounding, nothing is published; else certificate.json in the version
    says what was compared, how long requests take, and of what the version is made.

    With `--format ctranslate2`, FOLDER becomes a model for CTranslate2 instead, with the tokenizer and a README.md
    that explains how to translate with it. The scores of the run's translations are compared.

    A run that was trained on a treebank serves lines of brackets, found by the search of its configuration.

    To translate with an export alone: `keras-transformer translate-export FOLDER < in.txt > out.txt`.
    """
    with exit_codes():
        if check and no_check:
            raise ExportError("--check FILE and --no-check contradict each other: give one of them.")
        if quantization and format is not Format.CTRANSLATE2:
            raise ExportError(
                f"--quantization {quantization} needs --format ctranslate2. A SavedModel has --precision."
            )
        if precision != "float32" and format is not Format.SAVED_MODEL:
            raise ExportError(f"--precision {precision} is for a SavedModel. --format {format} has --quantization.")
        if alignment_layer is not None and format is not Format.SAVED_MODEL:
            raise ExportError(f"--alignment-layer {alignment_layer} is for a SavedModel, not for --format {format}.")
        if signatures and format is not Format.SAVED_MODEL:
            raise ExportError(f"--signature {signatures[0]} is for a SavedModel, not for --format {format}.")
        sentences = None if no_check else check or RunFolder(run).check_lines
        options = SearchOptions(**search.with_run_defaults(RunFolder(run).inference().search))
        if format is Format.CTRANSLATE2:
            print(export_ctranslate2(run, to, options, max_source_tokens, sentences, quantization))
        else:
            names = tuple(signatures or ())
            print(export_run(run, to, options, max_source_tokens, sentences, precision, alignment_layer, names))


def export_run(
    run: str | os.PathLike,
    folder: str | os.PathLike,
    options: SearchOptions,
    max_source_tokens: int,
    sentences: pathlib.Path | None,
    precision: str = "float32",
    alignment_layer: int | None = None,
    signatures: tuple[str, ...] = (),
) -> pathlib.Path:
    """Export a run folder as the next version in `folder`. Return the path of the version.

    Of the signatures, all are written, or those that `signatures` names.

    `sentences` is a file of source sentences on which the version must translate as the Translator of the same
    precision does; with None nothing is compared. Raises UserError if the run cannot be opened, if the version cannot
    be written or if it translates differently; then nothing is published.
    """
    refuse_version(folder)
    with quiet_imports():
        from keras_transformer.saved_run import load_run
        from keras_transformer.translator import Translator, in_precision

        from .certificate.certificate import certify, summary
        from .graph.operations import refuse_xla
        from .graph.served_graph import ServedGraph
        from .graph.version_folder import write_saved_model

    multiply_in_float32()
    transformer, tokenizer = load_run(run)
    transformer = in_precision(transformer, precision)
    lines = read_sentences(sentences) if sentences else []
    translator = Translator(transformer, tokenizer, options, max_source_tokens=max_source_tokens, precision=precision)
    with quiet_imports():  # the tokenizer prints a notice
        served = ServedGraph(transformer, tokenizer, options, translator.max_source_tokens, alignment_layer)
    with signals_raise(), unfinished_version(folder) as unfinished:
        write_saved_model(served, tokenizer, unfinished, signatures)
        refuse_xla(unfinished)
        if lines:
            log.info("written; comparing each runtime with the Translator on %d lines", len(lines))
            print(summary(certify(unfinished, RunFolder(run), translator, lines, precision, served.alignment_layer)))
        return publish(unfinished)


def export_ctranslate2(
    run: str | os.PathLike,
    folder: pathlib.Path,
    options: SearchOptions,
    max_source_tokens: int,
    sentences: pathlib.Path | None,
    quantization: str | None,
) -> pathlib.Path:
    """Export a run folder as the CTranslate2 model `folder`, which must not exist yet. Return its path.

    `sentences` is a file of source sentences, or None. The exported model must give their translations the scores
    that the Translator gives them; if its weights are quantized, the difference is only printed.
    Raises UserError as `export_run` does, for a coverage penalty, and if CTranslate2 is not installed or cannot express
    the model.
    """
    if options.coverage_penalty:
        raise ExportError(
            f"The coverage penalty is {options.coverage_penalty}, and the README.md of --format ctranslate2 searches "
            "without one: give --coverage-penalty 0, or --format saved_model."
        )
    with quiet_imports():
        from keras_transformer.saved_run import load_run
        from keras_transformer.translator import Translator

        from .ctranslate2 import convert as ctranslate2

        ctranslate2.require(quantization)
    folder = folder.resolve()  # the end of a link, or ".", can be replaced
    ctranslate2.refuse_existing(folder)
    multiply_in_float32()
    transformer, tokenizer = load_run(run)
    lines = read_sentences(sentences) if sentences else []
    translator = Translator(transformer, tokenizer, options, max_source_tokens=max_source_tokens)
    with signals_raise(), unfinished_version(folder.parent) as unfinished:
        ctranslate2.write_model(transformer, tokenizer, unfinished, quantization)
        ctranslate2.write_readme(unfinished, folder.name, translator, transformer.transformer_config)
        if lines:
            log.info("written; comparing it with the Translator on %d lines", len(lines))
            comparison = ctranslate2.compare_scores(unfinished, translator, lines)
            print(comparison)
            if not quantization:
                ctranslate2.refuse_other_scores(comparison)
        return unfinished.rename(folder)


def multiply_in_float32() -> None:
    """Let GPUs multiply float32 as such, and not in TF32, whose scores are too far from those of processors."""
    import tensorflow as tf

    tf.config.experimental.enable_tensor_float_32_execution(False)


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


def main(prog_name: str | None = None, arguments: Sequence[str] | None = None) -> None:
    """Prepare the process, then run the command."""
    end_on_interrupt()
    prepare_process()
    log.setLevel(logging.INFO)
    app(arguments, prog_name=prog_name)


if __name__ == "__main__":
    main()
