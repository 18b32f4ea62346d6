"""`python -m export RUN --to FOLDER`: write a version, read it back, compare it with the Translator, publish it.

TensorFlow is imported by the functions that need it, so that `--help` answers at once.
"""

import itertools
import logging
import pathlib
from typing import Annotated

import typer

from export.versions import ExportError, publish, unfinished_version
from keras_transformer.config import SearchOptions
from keras_transformer.console import exit_codes, quiet_start
from keras_transformer.files import read_lines

CHECK_LINES = "validation.src.txt"  # sentences that training leaves in the run folder
MOST_CHECK_LINES = 500

log = logging.getLogger("export")
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(no_args_is_help=True)
def export(
    run: Annotated[pathlib.Path, typer.Argument(metavar="RUN", help="The run folder that training left.")],
    to: Annotated[
        pathlib.Path, typer.Option(metavar="FOLDER", help="Where versions are numbered; what a server watches.")
    ],
    beam_size: Annotated[
        int, typer.Option(help="Hypotheses kept for each sentence; 1 is greedy search.")
    ] = SearchOptions.beam_size,
    length_penalty: Annotated[
        float, typer.Option(help="alpha in score = log P / ((5 + tokens) / 6)^alpha; 0 is none.")
    ] = SearchOptions.length_penalty,
    extra_length: Annotated[
        int, typer.Option(help="Longest output: as many tokens as the source has, and these.")
    ] = SearchOptions.extra_length,
    max_source_tokens: Annotated[
        int, typer.Option(help="The server cuts longer sentences to this; at most 512. Long ones hold up their batch.")
    ] = 512,
    check: Annotated[
        pathlib.Path | None,
        typer.Option(
            metavar="FILE",
            help=f"Source sentences, one a line, to compare on: the first {MOST_CHECK_LINES}. "
            f"Without it, RUN/{CHECK_LINES}.",
        ),
    ] = None,
    no_check: Annotated[bool, typer.Option("--no-check", help="Publish without comparing.")] = False,
):
    """Write RUN as FOLDER/1, FOLDER/2, ...: a SavedModel that `tensorflow_model_server` serves.

    Its signature `serving_default` takes `text`, strings of shape (batch), and gives `translation`, strings, and
    `score`, float32: natural log-probability over the length penalty. The tokenizer is inside; no Python, no XLA.

    What was written is read back and compared with translating from RUN. Where they differ by more than rounding,
    nothing is published.

    To translate with an export alone: `python -m export translate FOLDER < in.txt > out.txt`; its options are
    listed by `python -m export translate --help`.
    """
    with exit_codes():
        if no_check and check:
            raise ExportError("--check FILE and --no-check contradict each other: give one of them.")
        print(
            export_run(
                run, to, SearchOptions(beam_size, length_penalty, extra_length), max_source_tokens, check, no_check
            )
        )


def export_run(run, folder, options, max_source_tokens=512, check=None, no_check=False):
    """Export a run folder into the next version of `folder`, if that translates as the Translator does.

    Returns the path of the version. Raises ConfigError where the run cannot be opened, ExportError where the export
    cannot be written, or differs.
    """
    with quiet_start():
        from export.check import refuse_xla
        from export.saved_model import write_saved_model
        from export.serving import ServedTranslator
        from keras_transformer.translator import Translator, load_run

    transformer, tokenizer = load_run(run)
    lines = [] if no_check else check_lines(run, check)
    translator = Translator(transformer, tokenizer, options, max_source_tokens=max_source_tokens)
    served = ServedTranslator(transformer, tokenizer, options, translator.max_source_tokens)
    with unfinished_version(folder) as unfinished:
        write_saved_model(served, tokenizer, unfinished)
        refuse_xla(unfinished)
        if lines:
            compare_or_refuse(unfinished, translator, lines)
        return publish(unfinished)


def check_lines(run, check):
    """The sentences to compare on. Raises ExportError where there are none."""
    path = check or run / CHECK_LINES
    if not path.is_file():
        raise ExportError(
            f"There is no file {check} to compare the export on."
            if check
            else f"{run} has no {CHECK_LINES} to compare the export on: give sentences with --check FILE, "
            "or publish without comparing with --no-check."
        )
    with path.open("rb") as stream:
        lines = list(itertools.islice(read_lines(stream, path), MOST_CHECK_LINES))
    if not any(line.strip() for line in lines):
        raise ExportError(f"{path} has no sentence to compare the export on.")
    return lines


def compare_or_refuse(version, translator, lines):
    """Print what was compared. Raises ExportError with the first line that differs."""
    from export.check import compare
    from export.exported import ExportedTranslator

    log.info("written; comparing it with the Translator on %d lines", len(lines))
    comparison = compare(ExportedTranslator(version), translator, lines)
    print(comparison)
    if comparison.differences:
        raise ExportError(
            f"The export does not translate as the run does, first in {comparison.differences[0]}. "
            "Nothing was published."
        )
