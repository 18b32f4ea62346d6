"""`python -m benchmarks.speed.students`: what a decoder of fewer layers, and a shortlist, take off a sentence.

Prints a table of milliseconds of processor time per sentence: LiteRT files of models 128 wide with 10,000 pieces, one
sentence a call, beam 4, one thread. Random weights and a random shortlist; every source has SOURCE tokens, and every
output one more. All take turns, a cell is the median of its turns, and a share is of the first model without a
shortlist in the same precision.
"""

import pathlib
import tempfile
from collections.abc import Mapping
from typing import Annotated

import typer

from benchmarks.speed.decoder_layers import take_turns
from benchmarks.speed.shortlist import Task, opened, prepare_random, translated
from keras_transformer.config import tiny
from keras_transformer.ground.machine import processor_and_cores
from keras_transformer.search.options import OFF, ON

SOURCE = 16  # tokens, EOS included
MODELS = {f"{encoder}+{decoder}": (encoder, decoder) for encoder, decoder in ((4, 4), (6, 2), (6, 1), (4, 1))}
ENGINES = ("litert", "litert_int8")
Cell = tuple[str, str, str]  # model, shortlist, engine


def main(
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each.")] = 9,
    sentences: Annotated[int, typer.Option(min=1, help="Per turn.")] = 16,
) -> None:
    with tempfile.TemporaryDirectory() as place:
        works = {}
        for name, (encoder, decoder) in MODELS.items():
            folder = pathlib.Path(place) / name
            config = tiny.replace(vocab_size=10_000, encoder_layers=encoder, decoder_layers=decoder)
            lines = [shortened(line) for line in prepare_random(folder, config, sentences)]
            task = Task(folder, lines, 1, SOURCE)
            for shortlist in (OFF, ON):
                for engine in ENGINES:
                    work = translated(opened(engine, task, shortlist, 1), lines, 1)
                    works[name, shortlist, engine] = work, sentences
        found = {cell: processor for cell, (_, processor) in take_turns(works, rounds).items()}
    print(f"{processor_and_cores()}\n\n{table(found)}")


def shortened(line: str) -> str:
    """Return a line of words, each of which is a token, as one of SOURCE tokens."""
    return " ".join(line.split()[: SOURCE - 1])


def table(seconds: Mapping[Cell, float]) -> str:
    """Return milliseconds and shares in Markdown."""
    head = "| layers | shortlist | float32, ms | share | int8, ms | share |\n|---|---|---:|---:|---:|---:|\n"
    return head + "".join(
        f"| {model} | {shortlist} | {' | '.join(cells_of(model, shortlist, seconds))} |\n"
        for model in MODELS
        for shortlist in (OFF, ON)
    )


def cells_of(model: str, shortlist: str, seconds: Mapping[Cell, float]) -> list[str]:
    first = next(iter(MODELS))
    cells = []
    for engine in ENGINES:
        own, whole = seconds[model, shortlist, engine], seconds[first, OFF, engine]
        cells += [f"{1e3 * own:.2f}", f"{own / whole:.2f}"]
    return cells


if __name__ == "__main__":
    typer.run(main)
