"""`python -m benchmarks.recipes.phrases RUN`: what the rules of a search for phrases give, and what they cost.

Sentences of Multi30k's test set must have words of their references that their translations lack, or must not have
words that many references have.
If the model knows placeholders, each sentence also gets one in place of a word, and is searched with their rule and
without it. All ways take turns; a time is the median of the rounds.
"""

import pathlib
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Annotated, NamedTuple, Protocol

import typer

from benchmarks.multi30k import lines_of, text_of
from benchmarks.result_files import command_line
from keras_transformer.commands.console import command_app, exit_codes
from keras_transformer.inspection.bleu import CHRF, raw_bleu, score_by
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.pieces.translation import Translation
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run
from keras_transformer.search.options import SearchOptions
from keras_transformer.text.glossary import Glossary, Term
from keras_transformer.text.placeholders import SYMBOL, placeholders_in, symbol_of
from keras_transformer.text.required import has_phrase
from keras_transformer.text.spans import Protection
from keras_transformer.translation.parallel import tune_for_translation
from keras_transformer.translation.translator import Translator

TEXT, SIDES = "test_2016_flickr", ("en", "de")
BLEU = raw_bleu(SIDES[1])
WORD = re.compile(r"\b[^\W\d_]{4,}\b")
WORDS = {1: "a word", 2: "two words", 3: "three words"}
FORBIDDEN = 20  # words: the most frequent ones of the references
COLUMNS = ("what is asked of a line", "phrases that came, per cent", "BLEU", "chrF", "ms per sentence")
HEADER = f"| {' | '.join(COLUMNS)} |\n|---|{4 * '---:|'}"


class Translates(Protocol):
    """A Translator, as far as this benchmark needs one."""

    def translate(
        self, lines: list[str], *, protect: Protection, required: Sequence[Sequence[str]]
    ) -> list[Translation]: ...


class Way(NamedTuple):
    """A row of the table: lines, what must come in each of them, what must not in any, and the references if any."""

    name: str
    translator: Translates
    lines: list[str]
    required: Sequence[Sequence[str]]
    protection: Protection = Protection()  # noqa: B008 (it is frozen)
    references: Sequence[str] = ()

    def texts(self, count: int | None = None) -> list[str]:
        """Translate the lines, or the first ones."""
        lines, required = self.lines[:count], self.required[:count]
        return [best.text for best in self.translator.translate(lines, protect=self.protection, required=required)]


class WithoutPlaceholders(Tokenizer):
    """A tokenizer whose placeholders are pieces like others, so that a search has no rule for them."""

    def pieces(self) -> list[str]:
        return [SYMBOL.sub("", piece) for piece in super().pieces()]


def drawn(references: Sequence[str], texts: Sequence[str], count: int) -> list[list[str]]:
    """Return up to `count` words of each reference of at least four letters that a text lacks, drawn from a seed."""
    draw = random.Random(1)
    words = [list(dict.fromkeys(WORD.findall(reference))) for reference in references]
    lacking = [[w for w in of_line if not has_phrase(text, w)] for of_line, text in zip(words, texts, strict=True)]
    return [draw.sample(of_line, min(count, len(of_line))) for of_line in lacking]


def with_placeholder(line: str) -> str:
    """Return a line with a placeholder in place of its first long word, or behind a line that has none."""
    marked = WORD.sub(symbol_of(1), line, count=1)
    return marked if marked != line else f"{line} {symbol_of(1)}"


def ways_of(translator: Translates, lines: list[str], references: Sequence[str]) -> list[Way]:
    """Return the ways that any model has."""
    nothing: list[list[str]] = [[]] * len(lines)
    words = Counter(word for reference in references for word in WORD.findall(reference.lower()))
    forbidden = Glossary([Term(word, word) for word, _ in words.most_common(FORBIDDEN)])
    texts = [best.text for best in translator.translate(lines, protect=Protection(), required=nothing)]
    asked = {"nothing": nothing} | {f"{name} that it lacks": drawn(references, texts, n) for n, name in WORDS.items()}
    ways = [Way(name, translator, lines, required, references=references) for name, required in asked.items()]
    without = Protection(forbidden=forbidden)
    return [*ways, Way(f"none of {FORBIDDEN} words", translator, lines, nothing, without, references)]


def ways_of_placeholders(with_rule: Translates, without_rule: Translates, lines: list[str]) -> list[Way]:
    """Return the ways of a model that knows placeholders."""
    marked, required = [with_placeholder(line) for line in lines], [[]] * len(lines)
    return [
        Way("a placeholder, with its rule", with_rule, marked, required),
        Way("a placeholder, without its rule", without_rule, marked, required),
    ]


def rows_of(ways: Sequence[Way], rounds: int) -> Iterator[str]:
    """Translate in all ways in turn, and yield the rows of the table."""
    texts, seconds = {}, {way.name: [] for way in ways}
    for way in ways:
        way.texts(8)  # compiles
    for _ in range(rounds):
        for way in ways:
            begin = time.perf_counter()
            texts[way.name] = way.texts()
            seconds[way.name].append(time.perf_counter() - begin)
    for way in ways:
        scores = [score_by(by, texts[way.name], list(way.references)).value for by in (BLEU, CHRF) if way.references]
        bleu, chrf = (f"{score:.2f}" for score in scores) if scores else ("", "")
        taken = 1000 * median(seconds[way.name]) / len(way.lines)
        yield f"| {way.name} | {share(texts[way.name], way)} | {bleu} | {chrf} | {taken:.1f} |"


def share(texts: Sequence[str], way: Way) -> str:
    """Return how many per cent of the phrases and placeholders came; "" if there are none."""
    came = [has_phrase(text, each) for text, of_line in zip(texts, way.required, strict=True) for each in of_line]
    pairs = zip(texts, way.lines, strict=True)
    came += [text.count(symbol_of(1)) == 1 for text, line in pairs if symbol_of(1) in line]
    return f"{100 * sum(came) / len(came):.1f}" if came else ""


app = command_app()


@app.command()
def measure(
    run: Annotated[pathlib.Path, typer.Argument(metavar="RUN", help="Folder of a run from English to German.")],
    data: Annotated[pathlib.Path, typer.Option(help="The folder of Multi30k.")] = pathlib.Path("data/multi30k"),
    sentences: Annotated[int, typer.Option(min=8, help="Sentences that are translated.")] = 200,
    beam_size: Annotated[int, typer.Option(min=1, help="Hypotheses.")] = 4,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each way; the median counts.")] = 3,
) -> None:
    """Translate sentences of the test set of 2016 in each way, and print a table in Markdown."""
    with exit_codes():
        tune_for_translation()
        options = SearchOptions(beam_size=beam_size)
        translator = Translator.load(run, options)
        lines, references = (lines_of(text_of(data, f"{TEXT}.{side}"))[:sentences] for side in SIDES)
        ways = ways_of(translator, lines, references)
        if placeholders_in(translator.tokenizer.pieces()):
            transformer, _ = load_run(run)
            plain = Translator(transformer, WithoutPlaceholders(RunFolder(run).tokenizer), options)
            ways += ways_of_placeholders(translator, plain, lines)
        print(HEADER, flush=True)
        for row in rows_of(ways, rounds):
            print(row, flush=True)
        print(f"\n    {command_line('recipes.phrases')}")


if __name__ == "__main__":
    app()
