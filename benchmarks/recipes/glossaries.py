"""`python -m benchmarks.recipes.glossaries RUN [RUN ...]`: how often a term comes out right, and what it does to BLEU.

Each sentence of Multi30k's test set has a glossary of its own: one word, with what the reference has for it, in the
form in which a glossary would have it (train/data/word_pairs.py). With `--coined` it has a word that there is not, as
has the reference: so the table tells whether the word that it should replace stands beside it.
"""

import dataclasses
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

import typer

from benchmarks.multi30k import lines_of, text_of
from benchmarks.result_files import command_line, row_names
from keras_transformer.commands.console import command_app, exit_codes
from keras_transformer.inspection.bleu import raw_bleu, score_by
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.text.glossary import CASE, SOFT, Glossary, Term
from keras_transformer.text.spans import Protection
from keras_transformer.translation.parallel import tune_for_translation
from keras_transformer.translation.translator import Translator
from train.data.word_pairs import WORD, WordPairs, alike

TRAINING_TEXT, TEXT, SIDES = "train", "test_2016_flickr", ("en", "de")
BLEU = raw_bleu(SIDES[1])
FEWEST_LETTERS = 4  # of a term: shorter ones are mostly articles and prepositions
COINED = "Zorb"  # and a word in lower case: a word that no text has
REQUIRED = "required"  # by the search, with no glossary
WAYS: dict[str, tuple[str, ...]] = {"no glossary": (), "exact": (CASE,), REQUIRED: (), "soft": (CASE, SOFT)}


class Case(NamedTuple):
    """A pair of the test set, a word of its source, and its translation: in the reference, and in the glossary."""

    source: str
    reference: str
    word: str
    target: str
    term: str
    usual: str  # what a glossary would have; another term than `term` if that is coined


def coined(case: Case) -> Case:
    """Return a case with a coined word as its term, and in its reference."""
    word = COINED + case.usual.lower()
    reference = re.sub(rf"\b{case.target}\b", word, case.reference)
    return case._replace(reference=reference, target=word, term=word)


def cases_of(pairs: Sequence[tuple[str, str]], word_pairs: WordPairs, most: int) -> list[Case]:
    """The first pairs that have such a word; of several, the one whose translation is least expected."""
    cases = []
    for source, reference in pairs:
        found = [pair for pair in word_pairs.of_pair(source, reference) if len(pair.target) >= FEWEST_LETTERS]
        if found:
            pair = min(found, key=lambda pair: (word_pairs.probability_of(source, pair), pair.start))
            cases.append(Case(source, reference, source[pair.start : pair.end], pair.target, pair.term, pair.term))
    return cases[:most]


def row_of(name: str, cases: Sequence[Case], translations: Sequence[str]) -> list[str]:
    """A row of the table: shares of the terms in per cent, and BLEU."""
    words = [[match[0] for match in WORD.finditer(text)] for text in translations]
    of_each = list(zip(cases, words, strict=True))
    shares = (
        sum(case.target in of_line for case, of_line in of_each),
        sum(case.term in of_line for case, of_line in of_each),
        sum(any(alike(case.usual, word) for word in of_line) for case, of_line in of_each),
    )
    bleu = score_by(BLEU, list(translations), [case.reference for case in cases])
    return [name, *(f"{100 * share / len(cases):.1f}" for share in shares), f"{bleu.value:.2f}"]


def rows_of(name: str, run: pathlib.Path, cases: Sequence[Case], beam_size: int | None) -> Iterator[list[str]]:
    translator = Translator.load(run)
    if beam_size is not None:
        translator = Translator.load(run, dataclasses.replace(translator.options, beam_size=beam_size))
    for way, flags in WAYS.items():
        if SOFT in flags and not RunFolder(run).inference().terms:
            continue
        if not flags:
            phrases = [[case.term] if way == REQUIRED else [] for case in cases]
            texts = [best.text for best in translator.translate([case.source for case in cases], required=phrases)]
        else:
            texts = [
                translator.translate(
                    [case.source], protect=Protection(glossary=Glossary([Term(case.word, case.term, flags)]))
                )[0].text
                for case in cases
            ]
        yield row_of(f"{name}, {way}", cases, texts)


app = command_app()


@app.command()
def main(
    runs: Annotated[
        list[pathlib.Path], typer.Argument(metavar="RUN ...", help="Folders of runs from English to German.")
    ],
    data: Annotated[pathlib.Path, typer.Option(help="The folder of Multi30k.")] = pathlib.Path("data/multi30k"),
    beam_size: Annotated[
        int | None, typer.Option(min=1, help="Hypotheses per sentence.", show_default="the run's")
    ] = None,
    sentences: Annotated[int, typer.Option(min=1, help="Sentences that are translated.")] = 400,
    is_coined: Annotated[bool, typer.Option("--coined", help="Take words that there are not as terms.")] = False,
) -> None:
    """Translate sentences of the test set of 2016 with a glossary of one term each, and print a table in Markdown."""
    with exit_codes():
        train, test = (
            list(zip(*(lines_of(text_of(data, f"{name}.{side}")) for side in SIDES), strict=True))
            for name in (TRAINING_TEXT, TEXT)
        )
        cases = cases_of(test, WordPairs.learned(train), sentences)
        inflected = sum(case.target != case.term for case in cases)
        print(f"{len(cases)} sentences; of {inflected}, the reference has another form than the glossary.\n")
        cases, last = (list(map(coined, cases)), "the usual word, in any form") if is_coined else (cases, "in any form")
        print(f"| per cent of the terms | as in the reference | as in the glossary | {last} | BLEU |")
        print("|---|---:|---:|---:|---:|", flush=True)
        tune_for_translation()
        for name, run in zip(row_names(runs), runs, strict=True):
            for row in rows_of(name, run, cases, beam_size):
                print(f"| {' | '.join(row)} |", flush=True)
        print(f"\n    {command_line('recipes.glossaries')}")


if __name__ == "__main__":
    app()
