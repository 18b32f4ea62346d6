"""`keras-transformer export RUN --to FOLDER`: write an export, compare it with the Translator, publish it.

The functions that need TensorFlow import it themselves, so that `--help` answers at once.
"""

from keras_transformer.commands.signals import end_on_interrupt

if __name__ == "__main__":
    end_on_interrupt()  # before the imports below, which take a second

import logging
import pathlib
from typing import Annotated

import typer

from keras_transformer.commands.console import command_app, exit_codes, program
from keras_transformer.commands.options import MaxSourceTokens, RunName, SearchArguments, takes_search_options
from keras_transformer.commands.runs import opened
from keras_transformer.pieces.batching import LONGEST_SOURCE
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.search.options import RUN_OPTIONS, SearchOptions

from .formats import FormatArguments, takes_format
from .job import MOST_SENTENCES, ExportJob
from .versions import ExportError

log = logging.getLogger("export")
app = command_app()


@app.command(no_args_is_help=True)
@takes_search_options(*RUN_OPTIONS)
@takes_format
def export(
    run: RunName,
    to: Annotated[
        pathlib.Path,
        typer.Option(
            metavar="FOLDER",
            help="The folder of numbered versions that a server watches; with another format, the model's own.",
        ),
    ],
    format: FormatArguments,
    *,
    search: SearchArguments,
    max_source_tokens: MaxSourceTokens = LONGEST_SOURCE,
    check: Annotated[
        pathlib.Path | None,
        typer.Option(
            metavar="FILE",
            help=f"Source sentences, one per line, to compare on: the first {MOST_SENTENCES}. "
            "Without it, RUN/validation.src.txt.",
        ),
    ] = None,
    no_check: Annotated[bool, typer.Option("--no-check", help="Publish without comparing.")] = False,
    source_language: Annotated[
        str,
        typer.Option(
            metavar="CODE",
            help="Of the text that names none, such as en, for a model that reads several.",
            show_default="the only one",
        ),
    ] = "",
    target_language: Annotated[
        str,
        typer.Option(
            metavar="CODE",
            help="Into which a text is translated that names none, for a model that writes several.",
            show_default="the only one",
        ),
    ] = "",
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
    that explains how to translate with it. The scores of the run's translations are compared. With `--format litert`
    it becomes a model for LiteRT, whose translations are compared. With `--format huggingface` it becomes one that
    transformers opens as a model of its family, such as a MarianMTModel, with a model card; scores are compared.

    What is left out of the search is that of the run's inference.json, if it has it. A run that was trained on a
    treebank serves lines of brackets.

    To translate with an export alone: `keras-transformer translate-export FOLDER < in.txt > out.txt`.
    """
    with exit_codes():
        if check and no_check:
            raise ExportError("--check FILE and --no-check contradict each other: give one of them.")
        chosen = format.chosen()
        folder = RunFolder(opened(run))
        sentences = None if no_check else check or folder.check_lines
        inference = folder.inference()
        options = SearchOptions(**search.with_run_defaults(inference.search))
        languages = inference.languages
        if format.name != "huggingface" or source_language or target_language:  # transformers asks for them itself
            languages = languages.by_default(source_language, target_language)
        of_model = languages, inference.alignment
        print(chosen.export(ExportJob(folder.path, to, options, max_source_tokens, sentences, *of_model)))


main = program(app, log=log, ends=end_on_interrupt)


if __name__ == "__main__":
    main()
