"""`python -m benchmarks.speed.large_translate RUN WORK`: LiteRT beside CTranslate2 in int8, of the same weights.

For imported models with random weights, which CTranslate2's format is refused for: both write as many tokens, for they
never end. RUN is what `keras-transformer import` wrote; WORK is a folder for its exports, made if they are not there
yet: without a shortlist, and with one in which every piece has 100 random others. Each engine has one thread. Turns
alternate, and the table has the median of processor seconds.
"""

import itertools
import pathlib
import statistics
import time
from collections.abc import Callable
from typing import Annotated

import ctranslate2
import typer

from benchmarks.result_files import command_line
from benchmarks.speed.shortlist import write_random_shortlist
from benchmarks.speed.translate_work import python
from export.ctranslate2.convert import write_vocabulary_map
from export.ctranslate2.spec import model_spec
from keras_transformer.commands.console import command_app, exit_codes
from keras_transformer.ground.machine import processor_and_cores
from keras_transformer.lite.translator import LiteTranslator
from keras_transformer.pieces.language_marks import MarkReader
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run
from keras_transformer.search.options import OFF, ON
from keras_transformer.shortlist.shortlist import Shortlist

LINE = "a b c d e f"
MANY = 32  # lines at once
LONGEST = 16  # tokens of a source that the exports take
EXTRA = 8  # tokens that an output has beyond its source: it fits the room of such a source, as nearly all text does
LITE = ["--format", "litert", "--quantization", "int8", "--no-check", "--max-source-tokens", LONGEST]
LITE += ["--extra-length", EXTRA]
HEAD = (
    f"| beam | shortlist | lines | tokens of each | LiteRT int8 | CTranslate2 {ctranslate2.__version__}, int8 "
    "| of its time |\n|---:|---|---:|---:|---:|---:|---:|"
)

app = command_app()


@app.command()
def main(
    run: Annotated[pathlib.Path, typer.Argument(metavar="RUN")],
    work: Annotated[pathlib.Path, typer.Argument(metavar="WORK")],
    source: Annotated[str, typer.Option(help="The language that is read; empty for a model not told it.")] = "en",
    target: Annotated[str, typer.Option(help="The language that is written.")] = "de",
    beam: Annotated[list[int] | None, typer.Option(min=1, help="Hypotheses of a search; may be repeated.")] = None,
    shortlist: Annotated[list[str] | None, typer.Option(help="off, on; may be repeated. Both if left out.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each.")] = 7,
) -> None:
    """Print a table in Markdown: greedy and beam 4, one line and many, without a shortlist and with one."""
    with exit_codes():
        lists = shortlist or [OFF, ON]
        prepare(run, work / "ctranslate2", ON in lists)
        languages = ["--source-language", source, "--target-language", target]
        exports = {asked: work / "litert_{}_{}".format(*asked) for asked in itertools.product(beam or (1, 4), lists)}
        for (size, each), export in exports.items():  # before any is opened: each takes several times the weights
            if not export.exists():
                search = ["--beam-size", size, "--shortlist", each, *languages]
                python("-m", "export", run, "--to", export, *LITE, *search)
        theirs = ctranslate2.Translator(str(work / "ctranslate2"), inter_threads=1, intra_threads=1)
        print(f"{command_line('speed.large_translate').strip()} on {processor_and_cores()}\n\n{HEAD}", flush=True)
        for export in exports.values():
            ours = LiteTranslator(export, threads=1)
            for count in (1, MANY):
                print(row(ours, theirs, count, source, target, rounds), flush=True)


def prepare(run: pathlib.Path, folder: pathlib.Path, has_shortlist: bool) -> None:
    """Write RUN in CTranslate2's format, int8, if it is not there; if it is to have a random shortlist, also that."""
    files = RunFolder(run)
    if has_shortlist and not files.shortlist.exists():
        write_random_shortlist(run)
    if folder.exists():
        return
    transformer, tokenizer = load_run(run)
    spec = model_spec(transformer, tokenizer.pieces())
    spec.optimize(quantization="int8")
    folder.mkdir(parents=True)
    spec.save(str(folder))
    if has_shortlist:
        write_vocabulary_map(Shortlist.load(files.shortlist), tokenizer, folder)


def row(ours: LiteTranslator, theirs: ctranslate2.Translator, count: int, source: str, target: str, rounds: int) -> str:
    """Return the row of so many lines: seconds per line. Both write as many tokens as ours does, which never ends."""
    pieces, options = ours.tokenizer.pieces(), ours.options
    marks = MarkReader(ours.languages, ours.tokenizer).marks(*ours.languages.chosen(source, target))
    line = [pieces[number] for number in (*marks.first, *ours.tokenizer.encode(LINE))]  # it adds the end itself
    opening = [[pieces[number] for number in marks.opening]] * count if marks.opening else None
    tokens = len(ours.translate([LINE])[0].ids)

    def translate():
        ours.translate([LINE] * count)

    def translate_theirs():
        theirs.translate_batch(
            [line] * count,
            target_prefix=opening,
            beam_size=options.beam_size,
            min_decoding_length=tokens,
            max_decoding_length=tokens,
            max_batch_size=count,
            use_vmap=options.shortlist == ON,
        )

    seconds, seconds_theirs = in_turns(translate, translate_theirs, rounds)
    cells = (
        options.beam_size,
        options.shortlist,
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
