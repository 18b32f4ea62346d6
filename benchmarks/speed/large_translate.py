"""`python -m benchmarks.speed.large_translate RUN EXPORT`: LiteRT beside CTranslate2 in int8, of the same weights.

For imported models with random weights, which CTranslate2's format is refused for: both write as many tokens, for they
never end. RUN is what `keras-transformer import` wrote, EXPORT its `--format litert --quantization int8`. Each has one
thread. Turns alternate, and the table has the median of processor seconds.
"""

import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Annotated

import ctranslate2
import typer

from benchmarks.result_files import command_line
from export.ctranslate2.spec import model_spec
from keras_transformer.commands.console import command_app, exit_codes
from keras_transformer.ground.machine import processor_and_cores
from keras_transformer.ground.tokens import EOS
from keras_transformer.lite.translator import LiteTranslator
from keras_transformer.runs.saved_run import load_run

LINE = "a b c d e f"
MANY = 32  # lines at once

app = command_app()


@app.command()
def main(
    run: Annotated[pathlib.Path, typer.Argument(metavar="RUN")],
    export: Annotated[pathlib.Path, typer.Argument(metavar="EXPORT")],
    source: Annotated[str, typer.Option(help="The piece of the language that is read.")] = "__en__",
    target: Annotated[str, typer.Option(help="The piece of the language that is written.")] = "__de__",
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each.")] = 7,
) -> None:
    """Print a table in Markdown: one line, and many."""
    with exit_codes(), tempfile.TemporaryDirectory() as folder:
        write_ctranslate2(run, pathlib.Path(folder))
        theirs = ctranslate2.Translator(folder, inter_threads=1, intra_threads=1)
        ours = LiteTranslator(export, threads=1)
        print(f"{command_line('speed.large_translate').strip()} on {processor_and_cores()}\n")
        print(f"| lines | tokens of each | {export.name} | CTranslate2 {ctranslate2.__version__}, int8 | of its time |")
        print("|---:|---:|---:|---:|---:|")
        for count in (1, MANY):
            print(row(ours, theirs, count, source, target, rounds), flush=True)


def write_ctranslate2(run: pathlib.Path, folder: pathlib.Path) -> None:
    """Write a run in CTranslate2's format, int8. The decoder of an imported one begins with the end of sentence."""
    transformer, tokenizer = load_run(run)
    spec = model_spec(transformer, tokenizer)
    spec.config.decoder_start_token = tokenizer.pieces()[EOS]
    spec.optimize(quantization="int8")
    spec.save(str(folder))


def row(ours: LiteTranslator, theirs: ctranslate2.Translator, count: int, source: str, target: str, rounds: int) -> str:
    """Return the row of so many lines: seconds per line. Both write as many tokens as ours does, which never ends."""
    pieces = ours.tokenizer.pieces()
    line = [source, *(pieces[number] for number in ours.tokenizer.encode(LINE))]
    tokens = len(ours.translate([LINE])[0].ids)

    def translate():
        ours.translate([LINE] * count)

    def translate_theirs():
        theirs.translate_batch(
            [line] * count,
            target_prefix=[[target]] * count,
            beam_size=ours.beam_size,
            min_decoding_length=tokens,
            max_decoding_length=tokens,
            max_batch_size=count,
        )

    seconds, seconds_theirs = in_turns(translate, translate_theirs, rounds)
    cells = (
        count,
        tokens,
        f"{seconds / count:.3f} s",
        f"{seconds_theirs / count:.3f} s",
        f"{seconds / seconds_theirs:.2f}",
    )
    return f"| {' | '.join(map(str, cells))} |"


def in_turns(first: Callable[[], None], second: Callable[[], None], rounds: int) -> tuple[float, float]:
    """Return the median of processor seconds of each, in turns, after one that is not counted."""
    took: tuple[list[float], list[float]] = [], []
    for number in range(rounds + 1):
        for work, times in zip((first, second), took, strict=True):
            began = time.process_time()
            work()
            if number:
                times.append(time.process_time() - began)
    return statistics.median(took[0]), statistics.median(took[1])


if __name__ == "__main__":
    app()
