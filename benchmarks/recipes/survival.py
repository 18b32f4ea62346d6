"""`python -m benchmarks.recipes.survival RUN`: what comes through, with and without protection, and what it costs.

The sentences are made: each has one thing of a kind that models often change. They are translated as they are, then
with every kind protected, then with a glossary of a term that each of them has.
"""

import random
import time
from typing import Annotated

import typer

from keras_transformer.commands.console import command_app, exit_codes
from keras_transformer.text.glossary import Glossary, Term
from keras_transformer.text.spans import KINDS, Protection
from keras_transformer.text.survival import survival
from keras_transformer.translation.parallel import tune_for_translation
from keras_transformer.translation.translator import Translator

SENTENCES = 70
TEMPLATES = (
    "A man with {number} dogs is standing in front of a house.",
    "{number} people are waiting at the station on {date}.",
    "The ticket for the dog costs {price}.",
    "A woman shows her website {url} to a dog.",
    "Write to {email} if you have seen the dog.",
    "Hello {placeholder}, your dog is playing in the park.",
    "A <b>brown dog</b> is running through the <i>water</i>.",
)
TERMS = Glossary([Term("dog", "K\u00f6ter"), Term("dogs", "K\u00f6ter"), Term("people", "Leute")])

app = command_app()


def sentences(count: int, seed: int = 1) -> list[str]:
    """Sentences in turn from each template, with what a seed draws."""
    draw = random.Random(seed)

    def filled(template: str) -> str:
        return template.format(
            number=draw.choice((draw.randint(2, 99), f"{draw.randint(1, 9)},{draw.randint(100, 999)}")),
            date=f"{draw.randint(2000, 2026)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}",
            price=draw.choice(("${}", "\u20ac{}", "{}\u20ac", "{}%")).format(
                f"{draw.randint(1, 99)}.{draw.randint(10, 99)}"
            ),
            url=f"https://example.org/{draw.choice(('dogs', 'a_b', 'x'))}?id={draw.randint(1, 999)}",
            email=f"info{draw.randint(1, 99)}@example.org",
            placeholder=draw.choice(("{name}", "%s", "${user}", "{0}", "%(name)s")),
        )

    return [filled(TEMPLATES[number % len(TEMPLATES)]) for number in range(count)]


@app.command()
def measure(run: Annotated[str, typer.Argument(metavar="RUN")], count: int = SENTENCES) -> None:
    """Print a table in Markdown: per kind, the share that comes through; and milliseconds per sentence."""
    with exit_codes():
        tune_for_translation()
        translator, lines = Translator.load(run), sentences(count)
        ways = {"as they are": Protection(), "protected": Protection(KINDS), "and a glossary": Protection(KINDS, TERMS)}
        columns, times = [], []
        for protection in ways.values():
            translator.translate(lines[:14], protect=protection)  # the first search compiles
            begin = time.perf_counter()
            translations = [best.text for best in translator.translate(lines, protect=protection)]
            times.append(1000 * (time.perf_counter() - begin) / len(lines))
            columns.append(survival(zip(lines, translations, strict=True)))
        print("\n".join(table(list(ways), columns, times)))


def table(ways: list[str], columns: list[dict], times: list[float]) -> list[str]:
    """Return the lines of a table with a row per kind and a column per way."""
    rows = [["per cent that come through", *ways], ["---", *["---:"] * len(ways)]]
    rows += [
        [f"{kind} ({columns[0][kind].in_sources})", *(f"{column[kind].per_cent:.0f}" for column in columns)]
        for kind in columns[0]
    ]
    rows.append(["milliseconds per sentence", *(f"{time_taken:.1f}" for time_taken in times)])
    return [f"| {' | '.join(row)} |" for row in rows]


if __name__ == "__main__":
    app()
