"""`python -m benchmarks.quality.placed RUN SOURCE TARGET`: how many tags and terms are placed at the right word.

Each word of a source that has a certain link to a word of its translation is once in a pair of tags, and once a term of
a glossary. A tag is right if it is around that word of the translation, a term if it replaces that word alone.
"""

import pathlib
from collections.abc import Sequence
from typing import Annotated

import typer

from benchmarks.result_files import command_line
from keras_transformer.commands.console import command_app, exit_codes
from keras_transformer.ground.machine import processor_and_cores
from keras_transformer.lite.translator import LiteTranslator
from keras_transformer.runs.aligned_by import LAST_BUT_ONE
from keras_transformer.shortlist.certain_links import MARKS, CertainLinks, LinkedPair, words_of
from keras_transformer.text.glossary import Glossary, Term
from keras_transformer.text.road import Engine
from keras_transformer.text.spans import Protection
from keras_transformer.translation.alignment_choice import JUDGED, MOST_PAIRS, TRANSLATED, error_rates
from keras_transformer.translation.parallel import tune_for_translation
from keras_transformer.translation.translator import Translator
from train.data.files import aligned_pairs

OPENS, CLOSES, TERM = "<b>", "</b>", "Qoph"
HEAD = "| engine | links | tags right | terms right |\n|---|---:|---:|---:|"

app = command_app()


@app.command()
def measure(
    run: Annotated[str, typer.Argument(metavar="RUN")],
    source: Annotated[pathlib.Path, typer.Argument(metavar="SOURCE", help="Of the training text.")],
    target: Annotated[pathlib.Path, typer.Argument(metavar="TARGET")],
    litert: Annotated[list[str] | None, typer.Option(metavar="FOLDER", help="Of the run; may be repeated.")] = None,
    sentences: Annotated[int, typer.Option(min=1, help="At most; those with the most links.")] = JUDGED,
) -> None:
    """Print a table in Markdown: for the last block but one, the best attention, and each LiteRT file."""
    with exit_codes():
        pairs = aligned_pairs(source, target)[:MOST_PAIRS]
        tune_for_translation()
        print(f"{command_line('quality.placed')} on {processor_and_cores()}\n\n{HEAD}", flush=True)
        rates = error_rates(Translator.load(run), pairs)
        ways = dict.fromkeys([LAST_BUT_ONE, min(rates, key=lambda rate: rate.error).aligned_by])
        engines: dict[str, Engine] = {f"Translator, {way}": Translator.load(run, alignment=way) for way in ways}
        engines |= {folder: LiteTranslator(folder) for folder in litert or ()}
        links, lines = CertainLinks(pairs), [line for line, _ in pairs[:: -(-len(pairs) // TRANSLATED)]]
        for name, engine in engines.items():
            print(row(name, engine, lines, links, sentences), flush=True)


def row(name: str, engine: Engine, lines: Sequence[str], links: CertainLinks, sentences: int) -> str:
    """Return the row of an engine, which is judged on its own translations."""
    found = [(line, best.text) for line, best in zip(lines, engine.translate(lines), strict=True)]
    gold = links.best_known(found, sentences)
    count = sum(len(pair.links) for pair in gold)
    shares = (f"{right / max(count, 1):.1%}" for right in (right_tags(engine, gold), right_terms(engine, gold)))
    return f"| {name} | {count} | {' | '.join(shares)} |"


def right_tags(engine: Engine, gold: Sequence[LinkedPair]) -> int:
    """Return for how many links a tag around the word of the source is around that of the translation."""
    cases = [(pair, *link) for pair in gold for link in pair.links]
    lines = [with_tag(pair.source.split(), number) for pair, number, _ in cases]
    found = engine.translate(lines, protect="tags")
    return sum(
        inside(best.text) == [words_of(pair.target)[number]]
        for best, (pair, _, number) in zip(found, cases, strict=True)
    )


def with_tag(words: Sequence[str], number: int) -> str:
    """Return a sentence with a pair of tags around a word, without the marks beside it."""
    bare = words[number].strip(MARKS)
    tagged = words[number].replace(bare, f"{OPENS}{bare}{CLOSES}", 1)
    return " ".join([*words[:number], tagged, *words[number + 1 :]])


def inside(text: str) -> list[str]:
    """Return the words inside the tags of a text."""
    return words_of(text.partition(OPENS)[2].partition(CLOSES)[0])


def right_terms(engine: Engine, gold: Sequence[LinkedPair]) -> int:
    """Return for how many links the translation of the word of the source, as a term, replaces that word alone."""
    right = 0
    for pair in gold:
        for number, other in pair.links:
            term = Term(pair.source.split()[number].strip(MARKS), TERM)
            [best] = engine.translate([pair.source], protect=Protection(glossary=Glossary([term])))
            expected = words_of(pair.target)
            expected[other] = TERM.casefold()
            right += words_of(best.text) == expected
    return right


if __name__ == "__main__":
    app()
