"""`python -m keras_transformer`, installed as `keras-transformer`: translate with a trained run.

TensorFlow is imported by the command that needs it, so that `--help` answers at once.
"""

import pathlib
import signal
import sys
from typing import Annotated

import typer

from keras_transformer.config import SearchOptions
from keras_transformer.console import (
    exit_codes,
    groups,
    on_one_line,
    prepare_process,
    quiet_start,
)
from keras_transformer.files import read_lines

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.callback()
def commands():
    """A Transformer that was trained with `python -m train`."""


@app.command()
def translate(
    run: Annotated[pathlib.Path, typer.Argument(metavar="RUN", help="The run folder that training left.")],
    beam_size: Annotated[
        int, typer.Option(help="Hypotheses kept for each sentence; 1 is greedy search.")
    ] = SearchOptions.beam_size,
    length_penalty: Annotated[
        float, typer.Option(help="alpha in score = log P / ((5 + tokens) / 6)^alpha; 0 is none.")
    ] = SearchOptions.length_penalty,
    n_best: Annotated[
        int, typer.Option(help="Above 1: write up to so many different translations of each line, best first.")
    ] = SearchOptions.n_best,
    scores: Annotated[bool, typer.Option("--scores", help="Write `score<TAB>text`.")] = False,
    batch_size: Annotated[int, typer.Option(help="Sentences searched together.")] = 32,
    extra_length: Annotated[
        int, typer.Option(help="Longest output: as many tokens as the source has, and these.")
    ] = SearchOptions.extra_length,
    max_source_tokens: Annotated[
        int, typer.Option(help="Longer lines are cut to this, with a warning; at most 512.")
    ] = 512,
    xla: Annotated[
        bool, typer.Option("--xla/--no-xla", help="Compile the search: seconds once for each length, then faster.")
    ] = True,
):
    """Translate standard input, line by line.

    Writes one line to standard output for each line of input, an empty one for an empty one; both are UTF-8. A score
    is the natural log-probability of the translation over the length penalty: 0 or less, higher is better.

    With --n-best above 1 each translation is a line `number ||| text ||| score`, where number is that of the input
    line, counted from 1.
    """
    with exit_codes():
        options = SearchOptions(beam_size, length_penalty, extra_length, n_best)
        with quiet_start():
            from keras_transformer.translator import Translator

        settings = {"batch_size": batch_size, "max_source_tokens": max_source_tokens, "xla": xla}
        translator = Translator.load(run, options, **settings)
        first = 1
        for lines in groups(read_lines(sys.stdin.buffer, "the input"), sys.stdin, batch_size):
            for number, translations in enumerate(translator.translate_n_best(lines, first_line=first), first):
                sys.stdout.buffer.write(written(number, translations, n_best, scores).encode("utf-8"))
            sys.stdout.buffer.flush()
            first += len(lines)


def written(number, translations, n_best, with_score):
    """What input line `number` becomes in the output; a line break inside a translation becomes a space."""
    found = [(on_one_line(translation.text), f"{translation.score:.4f}") for translation in translations]
    if n_best > 1:
        return "".join(f"{number} ||| {text} ||| {score}\n" for text, score in found)
    text, score = found[0]
    return f"{score}\t{text}\n" if with_score else f"{text}\n"


def main():
    """The entry point: settings that concern the whole process, then the command."""
    prepare_process()
    leave_quietly()
    app()


def leave_quietly():
    """Let Ctrl-C, and a reader such as `head` that has enough, end the process without a traceback.

    The system's own handling also ends a long compilation, during which Python would not hear the signal.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else whoever started this chose to ignore it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


if __name__ == "__main__":
    main()
