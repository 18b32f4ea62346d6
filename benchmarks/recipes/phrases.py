"""`python -m benchmarks.recipes.phrases RUN SOURCE REFERENCE`: what the rules of a search cost, and what phrases give.

Each line must have words of its reference, drawn from a seed among those of at least four letters; or must not have
them. The table has the share of phrases that came, BLEU, and milliseconds per sentence.
"""

import pathlib
import random
import re
import time
from collections.abc import Sequence
from typing import Annotated

import sacrebleu
import typer

from keras_transformer.commands.console import command_app, exit_codes
from keras_transformer.decoding.options import SearchOptions
from keras_transformer.files import read_lines
from keras_transformer.parallel import tune_for_translation
from keras_transformer.text.glossary import Glossary, Term
from keras_transformer.text.required import has_phrase
from keras_transformer.text.spans import Protection
from keras_transformer.translator import Translator

app = command_app()


def lines_of(path: pathlib.Path, count: int) -> list[str]:
    with open(path, "rb") as stream:
        return list(read_lines(stream, path))[:count]


def words_of(reference: str, count: int, draw: random.Random) -> list[str]:
    """Return up to `count` words of a reference that have at least four letters."""
    words = list(dict.fromkeys(re.findall(r"\b[^\W\d_]{4,}\b", reference)))
    return draw.sample(words, min(count, len(words)))


@app.command()
def measure(
    run: Annotated[str, typer.Argument(metavar="RUN")],
    source: Annotated[pathlib.Path, typer.Argument(metavar="SOURCE")],
    reference: Annotated[pathlib.Path, typer.Argument(metavar="REFERENCE")],
    count: int = 200,
    beam_size: int = 4,
) -> None:
    """Print a table in Markdown, with a row per way of searching."""
    with exit_codes():
        tune_for_translation()
        translator = Translator.load(run, SearchOptions(beam_size=beam_size))
        lines, references = lines_of(source, count), lines_of(reference, count)
        asked = {number: drawn(references, number) for number in (1, 3)}
        ways = {"no rule": {}}
        ways |= {f"{number} phrases": {"required": phrases} for number, phrases in asked.items()}
        forbidden = Glossary([Term(word, word) for word in sorted({word for [word] in asked[1]})[:20]])
        ways |= {"20 words forbidden": {"protect": Protection(forbidden=forbidden)}}
        print("| rule | phrases that came, per cent | BLEU | milliseconds per sentence |\n|---|---:|---:|---:|")
        for name, how in ways.items():
            translator.translate(lines[:8], **{key: part(value, 8) for key, value in how.items()})  # compiles
            begin = time.perf_counter()
            texts = [best.text for best in translator.translate(lines, **how)]
            taken = 1000 * (time.perf_counter() - begin) / len(lines)
            bleu = sacrebleu.corpus_bleu(texts, [references]).score
            print(f"| {name} | {share(texts, how.get('required', []))} | {bleu:.2f} | {taken:.1f} |", flush=True)


def drawn(references: Sequence[str], count: int) -> list[list[str]]:
    draw = random.Random(1)
    return [words_of(reference, count, draw) or ["der"] for reference in references]


def part(value: list | Protection, count: int) -> list | Protection:
    return value[:count] if isinstance(value, list) else value


def share(texts: Sequence[str], required: Sequence[Sequence[str]]) -> str:
    """Return how many per cent of the phrases are in their translations; "" if there are none."""
    came = [has_phrase(text, each) for text, of_line in zip(texts, required, strict=False) for each in of_line]
    return f"{100 * sum(came) / len(came):.1f}" if came else ""


if __name__ == "__main__":
    app()
