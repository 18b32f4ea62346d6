"""`keras-transformer cluster COMMAND`: what an export does with a corpus, on Spark: on many machines, or on this one.

Spark and TensorFlow are imported when they are needed, so that `--help` answers at once.
"""

from keras_transformer.commands.signals import end_on_interrupt

if __name__ == "__main__":
    end_on_interrupt()  # before the imports below, which take a second

from typing import Annotated, Any

import typer

from keras_transformer.commands.console import command_app, exit_codes, program
from keras_transformer.commands.options import BatchSize, TextArguments, takes_served_options, takes_text_options
from keras_transformer.pieces.batching import BATCH_SIZE
from keras_transformer.text.asks import Ask, phrases_of
from keras_transformer.text.cleaning import DUPLICATES, known_scripts

from .corpora import format_of
from .errors import ClusterError
from .job import Place, Request, run
from .options import Column, Export, FileFormat, Scripts, SecondColumn, WithConfidence, takes_languages, takes_place
from .works import Clean, Inputs, Nearest, Score, Translate, Work

app = command_app()


@app.callback()
def cluster():
    """Translate a corpus on Spark.

    It runs on many machines, or on the cores of this one. An export is sent to the workers, which need TensorFlow and
    tensorflow-text, or for a LiteRT model ai-edge-litert and sentencepiece. The same command, run again after it was
    stopped, keeps the parts that are finished.
    """


@app.command(no_args_is_help=True)
@takes_place
@takes_served_options(without=["n_best"])
@takes_text_options("target_prefixes", "required", "source_language", "target_language")
@takes_languages
def translate(
    export: Export,
    place: Place,
    search: dict,
    text: TextArguments,
    ask: Ask,
    confidence: WithConfidence = False,
    format: FileFormat = None,
    column: Column = "",
    batch_size: BatchSize = BATCH_SIZE,
):
    """Translate a corpus line by line.

    The output has one line for each line of input, in their order; JSONL, TSV and Parquet get the translation, its
    score, whether it was cut and an error as columns. A line that cannot be translated has the error, and in a text the
    one character U+FFFD. The options of the search, if there are any, need an export with the signature translate;
    others are what the export was made with. The column unplaced has what is missing of spans and required phrases.
    """
    with exit_codes():
        phrases, protection = phrases_of(text.require), text.protection()
        ask = ask._replace(prefix=text.target_prefix, required=phrases, protection=protection)
        work = Translate(sorted_inputs(search), ask=ask, confidence=confidence)
        run(export, request_of(work, place.source, format, [column], batch_size), place)


@app.command(no_args_is_help=True)
@takes_place
@takes_served_options(without=["n_best"])
@takes_languages
def back_translate(
    export: Export,
    place: Place,
    search: dict,
    ask: Ask,
    tag: Annotated[str, typer.Option(help="A text in front of each translation.", show_default="none")] = "",
    format: FileFormat = None,
    column: Column = "",
    batch_size: BatchSize = BATCH_SIZE,
):
    """Translate target text back into sources.

    As `translate`, with an export of the other direction, or one that has both languages: the source language is that
    of the text, the target language that of the sources. --temperature 1 samples (Edunov et al. 2018) in place of the
    beam, --tag marks what was translated (Caswell et al. 2019): a training has the same tag at the entry of data.train.
    """
    with exit_codes():
        work = Translate(sorted_inputs(search), tag, ask)
        run(export, request_of(work, place.source, format, [column], batch_size), place)


@app.command(no_args_is_help=True)
@takes_place
@takes_served_options("beam_size", "length_penalty")
@takes_languages
def distil(
    export: Export,
    place: Place,
    search: dict,
    ask: Ask,
    format: FileFormat = None,
    column: Column = "",
    reference_column: SecondColumn = "",
    batch_size: BatchSize = BATCH_SIZE,
):
    """Write the translations nearest to references.

    Of the beam of each sentence, the translation with the highest sentence chrF against the reference (Kim and Rush
    2016, section 3.3, with chrF in place of BLEU). Needs the signature translate, and sacrebleu on the workers.
    """
    with exit_codes():
        work, columns = Nearest(sorted_inputs(search), ask), [column, reference_column]
        run(export, request_of(work, place.source, format, columns, batch_size, "reference"), place)


@app.command(no_args_is_help=True)
@takes_place
@takes_languages
def score(
    export: Export,
    place: Place,
    ask: Ask,
    format: FileFormat = None,
    column: Column = "",
    translation_column: SecondColumn = "",
    batch_size: BatchSize = BATCH_SIZE,
):
    """Score pairs of sentences, to filter by it.

    Adds the log-probability of each translation, end of sentence included, and the score that a search would give it.
    Needs the signature score.
    """
    with exit_codes():
        columns = [column, translation_column]
        run(export, request_of(Score(ask), place.source, format, columns, batch_size, "translation"), place)


@app.command(no_args_is_help=True)
@takes_place
def clean(
    place: Place,
    source_script: Scripts,
    target_script: Scripts,
    identical: Annotated[bool, typer.Option("--identical", help="Sides that are the same.")] = False,
    length_ratio: Annotated[
        float | None, typer.Option(help="One side this many times as long as the other.", show_default="none")
    ] = None,
    longest_word: Annotated[
        int | None, typer.Option(min=1, help="A word of more characters than this.", show_default="none")
    ] = None,
    markup: Annotated[bool, typer.Option("--markup", help="A side that is mostly tags and links.")] = False,
    numbers: Annotated[bool, typer.Option("--numbers", help="Sides with different numbers.")] = False,
    languages: Annotated[
        str,
        typer.Option(
            metavar="SOURCE,TARGET", help="A side of another language than that, such as en,de.", show_default="none"
        ),
    ] = "",
    duplicates: Annotated[
        bool, typer.Option("--duplicates", help="A pair that came before, anywhere in the input.")
    ] = False,
    format: FileFormat = None,
    column: Column = "",
    translation_column: SecondColumn = "",
):
    """Say of each pair whether a training drops it.

    Adds the column dropped: the first of the rules that are named here which drops the pair, as data.clean of a
    training has them, or nothing. Needs no export.
    """
    with exit_codes():
        rules = {
            "identical": identical,
            "length_ratio": checked_ratio(length_ratio),
            "longest_word": longest_word,
            "markup": markup,
            "source_scripts": checked_scripts(source_script),
            "target_scripts": checked_scripts(target_script),
            "numbers": numbers,
            "languages": two_languages(languages),
            DUPLICATES: duplicates,
        }
        if not (named := tuple((name, value) for name, value in rules.items() if value)):
            raise ClusterError("No rule is named: `keras-transformer cluster clean --help` lists them.")
        columns = [column, translation_column]
        run(None, request_of(Clean(named), place.source, format, columns, BATCH_SIZE, "translation"), place)


def checked_ratio(ratio: float | None) -> float | None:
    """Return a ratio of lengths. Raises ClusterError for one that drops every pair, and for nan, which drops none."""
    if ratio is not None and not ratio > 1:
        raise ClusterError(f"--length-ratio is {ratio:g}; it must be above 1.")
    return ratio


def two_languages(text: str) -> tuple[str, ...]:
    """Return the two codes of "en,de", and nothing of "". Raises ClusterError if these are not two."""
    codes = tuple(code.strip() for code in text.split(",")) if text else ()
    if codes and (len(codes) != 2 or not all(codes)):
        raise ClusterError(f"--languages is {text}; it must be the codes of two languages, such as en,de.")
    return codes


def checked_scripts(scripts: list[str]) -> tuple[str, ...]:
    """Return the names of scripts. Raises ClusterError for one that Unicode does not have."""
    if unknown := [script for script in scripts if script not in known_scripts()]:
        raise ClusterError(f"There is no script {unknown[0]!r}; names are those of Unicode, such as LATIN or CYRILLIC.")
    return tuple(scripts)


def sorted_inputs(search: dict[str, Any]) -> Inputs:
    """Return options of a search as a Work has them."""
    return tuple(sorted(search.items()))


def request_of(
    work: Work, source: str, format: str | None, columns: list[str], batch_size: int, second: str = ""
) -> Request:
    """Return what is asked for; `second` is what the second column is called unless it is named."""
    if batch_size < 1:
        raise ClusterError(f"--batch-size is {batch_size}; it must be at least 1.")
    format = format or format_of(source)
    defaults = ("1", "2") if format == "tsv" else ("text", second)
    return Request(
        work, format, [name or default for name, default in zip(columns, defaults, strict=False)], batch_size
    )


main = program(app, is_long=True, ends=end_on_interrupt)


if __name__ == "__main__":
    main()
