"""`python -m benchmarks.quality.context RUN [RUN ...]`: whether it pays to read the sentences before one.

A column is a run, the first of which the others are compared with: one without data.context, and one with it, say.
"""

import pathlib
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.quality.consistency import Terms, pronoun_of, pronouns, terms_of
from benchmarks.result_files import command_line, row_names
from keras_transformer.commands.console import command_app, exit_codes
from keras_transformer.inspection.bleu import CHRF, raw_bleu, score_by
from keras_transformer.inspection.samples import translate_pairs
from keras_transformer.translation.parallel import tune_for_translation
from keras_transformer.translation.translator import Translator
from train.config.sources.files import FilesData
from train.data.corpus import Split
from train.data.prepare import load_test_split
from train.scoring.significance import differences

RESAMPLES = 1_000
GERMAN = "de"
TEST = "data/software/en-de/test.tsv"
MEASURES = raw_bleu(GERMAN), CHRF


def interval(values: Sequence[float] | np.ndarray, seed: int = 1) -> tuple[float, float, float]:
    """Return the mean of some values in per cent, and its 95 per cent interval by a bootstrap over them."""
    array = 100 * np.asarray(values, float)
    draws = np.random.default_rng(seed).integers(len(array), size=(RESAMPLES, len(array)))
    low, high = np.percentile(array[draws].mean(axis=1), (2.5, 97.5))
    return float(array.mean()), float(low), float(high)


def shown(values: np.ndarray, sign: str = "") -> str:
    """Return a mean in per cent with its interval; "none" without values."""
    if not len(values):
        return "none"
    mean, low, high = interval(values)
    return f"{mean:{sign}.1f} ({low:{sign}.1f} to {high:{sign}.1f})"


def translated(translator: Translator, split: Split, pairs: list[tuple[str, str]], is_alone: bool = False) -> list[str]:
    """Return translations that are made as the model reads documents, or of sentences alone."""
    earlier = () if is_alone else split.earlier(translator.context.sentences)
    return [sample.translation for sample in translate_pairs(translator, pairs, context=earlier)]


def hits(terms: Terms, pairs: list[tuple[str, str]], places: Sequence[int], texts: list[str]) -> Iterator[np.ndarray]:
    """Yield, for the translations of a run, 0 or 1 per term of a document, twice, and per pronoun."""
    yield terms.same(texts)
    yield terms.as_reference(texts)
    yield np.array([pronoun_of(texts[n], pairs[n][0]) == pronoun_of(pairs[n][1], pairs[n][0]) for n in places], float)


def table(of_runs: dict[str, list[str]], split: Split, pairs: list[tuple[str, str]]) -> Iterator[str]:
    """The lines of the table: a row per measure, a column per run and one per comparison with the first run."""
    documents = names_of(split, len(pairs))
    references = [reference for _, reference in pairs]
    terms, places = terms_of(pairs, documents), pronouns(pairs, documents)
    first, *others = of_runs
    yield f"| | {' | '.join([*of_runs, *(f'{name} minus {first}' for name in others)])} |"
    yield f"|---|{'---:|' * (len(of_runs) + len(others))}"
    for measure in MEASURES:
        scores = [score_by(measure, texts, references, RESAMPLES) for texts in of_runs.values()]
        cells = list(map(str, scores))
        for name in others if not scores[0].undefined else ():
            [found] = differences(of_runs[name], of_runs[first], references, [measure], "bootstrap")
            cells.append(f"{found.ours - found.theirs:+.2f} (p {found.p_value:.3f})")
        cells += [str(scores[0])] * (len(scores) + len(others) - len(cells))  # "n/a", if no reference has four tokens
        yield f"| {measure.name} | {' | '.join(cells)} |"
    values = {name: list(hits(terms, pairs, places, texts)) for name, texts in of_runs.items()}
    titles = (
        f"a term translated in one way, of {len(terms.terms):,} in documents",
        "a term translated as in the reference, of these",
        f"the pronoun of the reference, of {len(places):,} sentences",
    )
    for number, title in enumerate(titles):
        cells = [shown(of_run[number]) for of_run in values.values()]
        cells += [shown(values[name][number] - values[first][number], "+") for name in others]
        yield f"| {title} | {' | '.join(cells)} |"


def names_of(split: Split, count: int) -> list[str]:
    """Return the document of each pair that has text on both sides."""
    blank = frozenset(split.blank)
    names = [name for number, name in enumerate(split.documents(), 1) if number not in blank]
    return names[:count]


app = command_app()


@app.command()
def main(
    runs: Annotated[list[pathlib.Path], typer.Argument(metavar="RUN ...", help="Runs from English to German.")],
    data: Annotated[
        list[pathlib.Path] | None,
        typer.Option(help="TSV files: source, reference, document.", show_default="data/software/en-de/test.tsv"),
    ] = None,
    alone: Annotated[
        bool, typer.Option("--alone", help="Give each run that reads documents a column more: of sentences alone.")
    ] = False,
) -> None:
    """Translate a test set of documents, and print a table of BLEU, chrF, the same terms and the right pronouns.

    Shares are in per cent, with intervals of 95 per cent from a bootstrap over terms or sentences; p is that of
    sacreBLEU's paired bootstrap.
    """
    with exit_codes():
        files: list[Any] = [str(path) for path in data or [pathlib.Path(TEST)]]
        split = load_test_split(
            FilesData(source="files", train=files, validation=files, test=files, documents="column")
        )
        pairs = list(split)
        tune_for_translation()
        of_runs = {}
        for name, run in zip(row_names(runs), runs, strict=True):
            translator = Translator.load(run)
            of_runs[name] = translated(translator, split, pairs)
            if alone and translator.context.sentences:
                of_runs[f"{name}, alone"] = translated(translator, split, pairs, is_alone=True)
        for line in table(of_runs, split, pairs):
            print(line, flush=True)
        print(f"\n    {command_line('quality.context')}")


if __name__ == "__main__":
    app()
