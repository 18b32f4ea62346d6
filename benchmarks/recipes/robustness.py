"""`python -m benchmarks.recipes.robustness RUN [RUN ...]`: BLEU on a test set as people might have written it.

A row is a change of every source sentence, a column a run: with and without `training.augment`, say.
"""

import pathlib
import zlib
from collections.abc import Callable, Iterator
from typing import Annotated, NamedTuple

import numpy as np
import typer

from benchmarks.multi30k import lines_of, text_of
from benchmarks.result_files import command_line, row_names
from keras_transformer.commands.console import command_app, exit_codes
from keras_transformer.inspection.bleu import Measure, lower_bleu, raw_bleu, score_by
from keras_transformer.translation.parallel import tune_for_translation
from keras_transformer.translation.translator import Translator
from train.data.augmentation import in_capitals, with_typing_mistake, without_last_stop

TEXT, SIDES = "test_2016_flickr", ("en", "de")
RAW, LOWER = raw_bleu(SIDES[1]), lower_bleu(SIDES[1])

Pairs = list[tuple[str, str]]


class Row(NamedTuple):
    """A change of the pairs of a test set, and how their translations are scored."""

    name: str
    changed: Callable[[Pairs], Pairs]
    measure: Measure = RAW


def with_mistakes(pairs: Pairs) -> Pairs:
    """One typing mistake in each source, which follows from its text."""
    return [
        (with_typing_mistake(source, np.random.default_rng(zlib.crc32(source.encode()))), target)
        for source, target in pairs
    ]


def joined(pairs: Pairs, together: int = 2) -> Pairs:
    """Each pair with the next one behind it, or more of them, so many `together`; after the last comes the first."""
    rows = ([pairs[(place + n) % len(pairs)] for n in range(together)] for place in range(len(pairs)))
    return [(" ".join(source for source, _ in row), " ".join(target for _, target in row)) for row in rows]


ROWS = (
    Row("as it is", list),
    Row("as it is, scored without case", list, LOWER),
    Row("in capitals, scored without case", lambda pairs: [(in_capitals(s), t) for s, t in pairs], LOWER),
    Row("without its last stop", lambda pairs: [(without_last_stop(s), t) for s, t in pairs]),
    Row("with one typing mistake per sentence", with_mistakes),
    Row("two sentences joined", joined),
)


def table(translators: dict[str, Translator], pairs: Pairs) -> Iterator[str]:
    """The lines of the table: BLEU per row, in a column per run."""
    yield f"| the sources | {' | '.join(translators)} |"
    yield f"|---|{'---:|' * len(translators)}"
    signatures = {}
    for row in ROWS:
        sources, references = map(list, zip(*row.changed(pairs), strict=True))
        cells = []
        for translator in translators.values():
            texts = [translation.text for translation in translator.translate(sources)]
            score = score_by(row.measure, texts, references)
            signatures[row.measure.form] = score.signature
            cells.append(f"{score.value:.2f}")
        yield f"| {row.name} | {' | '.join(cells)} |"
    yield ""
    for form, signature in signatures.items():
        yield f"BLEU of {form} is `{signature}`."


app = command_app()


@app.command()
def main(
    runs: Annotated[
        list[pathlib.Path], typer.Argument(metavar="RUN ...", help="Folders of runs from English to German.")
    ],
    data: Annotated[pathlib.Path, typer.Option(help="The folder of Multi30k.")] = pathlib.Path("data/multi30k"),
    sentences: Annotated[int, typer.Option(min=2, help="The first sentences of the test set of 2016.")] = 1_000,
) -> None:
    """Translate the test set of 2016 as it is and changed, and print a table of BLEU.

    The references stay as they are, but for joined sentences: what is measured is whether a reader gets what a careful
    writer would have got.
    """
    with exit_codes():
        sides = [lines_of(text_of(data, f"{TEXT}.{side}"))[:sentences] for side in SIDES]
        pairs = list(zip(*sides, strict=True))
        tune_for_translation()
        translators = {name: Translator.load(run) for name, run in zip(row_names(runs), runs, strict=True)}
        for line in table(translators, pairs):
            print(line, flush=True)
        print(f"\n    {command_line('recipes.robustness')}")


if __name__ == "__main__":
    app()
