"""`python -m export translate FOLDER`: translate with an export alone, without its run folder and model code."""

import pathlib
import sys
from typing import Annotated

import typer

from export.versions import find_version
from keras_transformer.console import exit_codes, groups, on_one_line, quiet_start
from keras_transformer.files import read_lines

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(no_args_is_help=True)
def translate(
    folder: Annotated[
        pathlib.Path, typer.Argument(metavar="FOLDER", help="What was exported to: its newest version; or one version.")
    ],
    scores: Annotated[bool, typer.Option("--scores", help="Write `score<TAB>text`.")] = False,
    batch_size: Annotated[int, typer.Option(min=1, help="Sentences translated together.")] = 32,
):
    """Translate standard input to standard output with an export: line in, line out, both UTF-8.

    An empty line stays an empty line. How to search, and what longer lines are cut to, was decided when the export
    was written.
    """
    with exit_codes():
        version = find_version(folder)
        with quiet_start():
            from export.exported import ExportedTranslator

            translator = ExportedTranslator(version, batch_size)
            translator.translate([""])  # the tokenizer inside has a notice of its own at its first use
        lines = read_lines(sys.stdin.buffer, "the input")
        for group in groups(lines, sys.stdin, batch_size):
            for translation in translator.translate(group):
                sys.stdout.buffer.write(written(translation, scores).encode("utf-8"))
            sys.stdout.buffer.flush()


def written(translation, with_score):
    text = on_one_line(translation.text)
    return f"{translation.score:.4f}\t{text}\n" if with_score else f"{text}\n"
