"""`python -m benchmarks.quality.catalogues RUN FILE.po ...`: BLEU of a model on the messages of programs.

Messages that the text of training nearly has are left out, as between the splits of a corpus of software.
"""

import pathlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

import typer

from benchmarks.errors import BenchmarkError
from benchmarks.quality.software import RESAMPLES
from benchmarks.quality.software import read as read_split
from benchmarks.result_files import command_line
from keras_transformer.commands.console import command_app, exit_codes
from keras_transformer.inspection.bleu import CHRF, raw_bleu, score_by
from keras_transformer.pieces.normalization import has_letter
from keras_transformer.translation.parallel import tune_for_translation
from keras_transformer.translation.translator import Translator
from train.data.catalogues import pairs_of, read_catalogue
from train.data.software.split import AlignedText, without_near, without_repetitions

app = command_app()


class Messages(NamedTuple):
    """The messages of a catalogue, and how many of those that are translated there were left out as near others."""

    name: str
    pairs: list[AlignedText]
    near: int


@app.command()
def measure(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run, a preset, or an export.")],
    files: Annotated[list[pathlib.Path], typer.Argument(metavar="FILE...", help="Catalogues, .po or .mo.")],
    train: Annotated[pathlib.Path, typer.Option(help="The pairs of the training, as of `keras-transformer software`.")],
    language: Annotated[str, typer.Option(help="Of the translations, for BLEU.")] = "de",
    most: Annotated[int, typer.Option(min=1, help="Messages of each file, at most: every n-th.")] = 400,
) -> None:
    """Print a table in Markdown with BLEU and chrF of each catalogue, and of all together."""
    with exit_codes():
        tune_for_translation()
        translator = Translator.load(run)
        known = [AlignedText(*pair) for pair in read_split(train)]
        print(command_line("quality.catalogues").strip(), end="\n\n")
        print("\n".join(table(translator, [read(path, known, most) for path in files], language)))


def read(path: pathlib.Path, known: Sequence[AlignedText], most: int) -> Messages:
    """Return the messages of a catalogue that have a letter, each once, and that no `known` pair nearly is."""
    counts = Counter[str]()
    catalogue = read_catalogue(path.read_bytes(), str(path), counts)
    pairs = [AlignedText(*pair, path.name) for pair in pairs_of(catalogue, None, counts)]
    different = without_repetitions([pair for pair in pairs if has_letter(pair.source)], counts)
    new = without_near(different, known)
    return Messages(path.name, new[:: -(-len(new) // most) or 1], len(different) - len(new))


def table(translator: Translator, catalogues: Sequence[Messages], language: str) -> Iterator[str]:
    """Yield a table of BLEU, with half of its 95 per cent interval, and chrF, without scores where no message is left.

    Raises BenchmarkError if none is left at all.
    """
    if not any(each.pairs for each in catalogues):
        names = ", ".join(each.name for each in catalogues)
        raise BenchmarkError(f"{names}: no translated message is left that is not near one of --train. Name others.")
    yield "| catalogue | messages | near those of training | BLEU | chrF |"
    yield "|---|---:|---:|---:|---:|"
    rows = [*catalogues, Messages("all", [pair for each in catalogues for pair in each.pairs], 0)]
    lines = [pair.source for pair in rows[-1].pairs]
    found = dict(zip(lines, [best.text for best in translator.translate(lines)], strict=True))
    near = sum(each.near for each in catalogues)
    for name, pairs, left in rows:
        if not pairs:
            yield f"| {name} | 0 | {left:,} | | |"
            continue
        ours, theirs = [found[pair.source] for pair in pairs], [pair.target for pair in pairs]
        bleu, chrf = (score_by(each, ours, theirs, RESAMPLES) for each in (raw_bleu(language), CHRF))
        left = near if name == "all" else left
        yield f"| {name} | {len(pairs):,} | {left:,} | {bleu.value:.2f} ± {bleu.margin or 0:.2f} | {chrf.value:.2f} |"
    yield f"\nBLEU: {bleu.signature}"


if __name__ == "__main__":
    app()
