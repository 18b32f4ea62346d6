"""`python -m benchmarks.quality.software RUN`: the text of software by kind and length, what comes through, and terms.

The files are those of `keras-transformer software`: source, target, and the page or catalogue, in columns.
"""

import math
import pathlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple

import typer

from benchmarks.result_files import command_line
from keras_transformer.commands.console import command_app, exit_codes
from keras_transformer.inspection.bleu import CHRF, raw_bleu, score_by
from keras_transformer.text.glossary import Glossary, Term
from keras_transformer.text.spans import KINDS, Protection
from keras_transformer.text.survival import survival
from keras_transformer.translation.parallel import tune_for_translation
from keras_transformer.translation.translator import Translator

RESAMPLES = 1_000
LONGEST_MENU = 4  # words of a text of a catalogue that counts as one of a menu
TEXT_KINDS = "help", "menus", "messages"
LENGTHS = {  # the most words of a source, by the name of its row
    "1 to 5 words": 5,
    "6 to 10 words": 10,
    "11 to 20 words": 20,
    "21 to 40 words": 40,
    "more than 40 words": math.inf,
}
LONGEST_TERM = 3  # words
FEWEST = 4  # letters of a term, and of its translation: shorter ones are in many words

app = command_app()


class Pair(NamedTuple):
    """A line of a split."""

    source: str
    reference: str
    document: str

    @property
    def kind(self) -> str:
        """One of TEXT_KINDS: help, and of what catalogues have, menus and messages."""
        if self.document.startswith("help/"):
            return "help"
        return "menus" if len(self.source.split()) <= LONGEST_MENU else "messages"

    @property
    def length(self) -> str:
        """One of LENGTHS."""
        return next(name for name, most in LENGTHS.items() if len(self.source.split()) <= most)


@app.command()
def measure(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run, a preset, or an export.")],
    data: Annotated[pathlib.Path, typer.Option(help="The folder of a language pair.")] = pathlib.Path(
        "data/software/en-de"
    ),
    split: Annotated[str, typer.Option(help="validation, test or pictures.")] = "validation",
) -> None:
    """Print tables in Markdown of the translations of a split."""
    with exit_codes():
        tune_for_translation()
        translator, pairs = Translator.load(run), read(data / f"{split}.tsv")
        print(command_line("quality.software").strip(), end="\n\n")
        print("\n".join(tables(translator, pairs, menu_terms(read(data / "train.tsv")), data.name)))


def read(path: pathlib.Path) -> list[Pair]:
    """The pairs of a split."""
    return [Pair(*line.split("\t")) for line in path.read_text(encoding="utf-8").split("\n") if line]


def tables(translator: Translator, pairs: Sequence[Pair], terms: dict[str, str], direction: str) -> Iterator[str]:
    """Yield the lines of all tables. direction: the codes of the languages, "en-de"."""
    source, _, language = direction.partition("-")

    def translated(some: Sequence[Pair], **asked) -> list[str]:
        asked |= translator.languages.of_lines([(source, language)] * len(some))
        return [best.text for best in translator.translate([pair.source for pair in some], **asked)]

    plain = translated(pairs)
    yield from scores_by_kind_and_length(pairs, plain, language)
    protected = translated(pairs, protect=Protection(KINDS))
    yield from ["", *survival_table(pairs, {"as they are": plain, "protected": protected}, language)]
    some, wanted = with_terms(pairs, terms)
    of_pair = dict(zip(pairs, plain, strict=True))
    glossary = Glossary(Term(source, target) for source, target in terms.items())
    ways = {
        "none": [of_pair[pair] for pair in some],
        "glossary": translated(some, protect=Protection(glossary=glossary)),
        "required": translated(some, required=wanted),
    }
    yield from ["", *terms_table(some, wanted, ways, language)]


def scores_by_kind_and_length(pairs: Sequence[Pair], translations: Sequence[str], language: str) -> Iterator[str]:
    """Yield a table of BLEU and chrF of all pairs, of each kind, and of each length."""
    yield "| text | pairs | BLEU | chrF |"
    yield "|---|---:|---:|---:|"
    for name in ("all", *TEXT_KINDS, *LENGTHS):
        rows = zip(pairs, translations, strict=True)
        both = [(text, pair.reference) for pair, text in rows if name in ("all", pair.kind, pair.length)]
        if both:
            ours, theirs = zip(*both, strict=True)
            bleu, chrf = (score_by(each, ours, theirs, RESAMPLES) for each in (raw_bleu(language), CHRF))
            yield f"| {name} | {len(both):,} | {bleu.value:.2f} ± {bleu.margin or 0:.2f} | {chrf.value:.2f} |"
    yield f"\nBLEU: {bleu.signature}"


def survival_table(pairs: Sequence[Pair], ways: dict[str, list[str]], language: str) -> Iterator[str]:
    """Yield a table with the share of spans of each kind that come through, and BLEU, by way of translating."""
    sources, references = [pair.source for pair in pairs], [pair.reference for pair in pairs]
    of_ways = [survival(zip(sources, texts, strict=True)) for texts in ways.values()]
    of_references = survival(zip(sources, references, strict=True))
    yield f"| per cent that come through | {' | '.join(ways)} | references |"
    yield "|---|" + "---:|" * (len(ways) + 1)
    for kind, found in of_references.items():
        shares = " | ".join(f"{one[kind].per_cent:.1f}" for one in (*of_ways, of_references))
        yield f"| {kind} ({found.in_sources}) | {shares} |"
    bleu = " | ".join(f"{score_by(raw_bleu(language), texts, references).value:.2f}" for texts in ways.values())
    yield f"| BLEU | {bleu} | |"


def menu_terms(pairs: Iterable[Pair]) -> dict[str, str]:
    """A glossary from menus: short texts of catalogues that have one translation, whatever their case and marks."""
    targets: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pair in pairs:
        source, target = pair.source.rstrip(".:… "), pair.reference.rstrip(".:… ")
        is_term = pair.kind == "menus" and len(source.split()) <= LONGEST_TERM and len(target.split()) <= LONGEST_TERM
        if is_term and len(source) >= FEWEST <= len(target) and (source + target).replace(" ", "").isalpha():
            targets[source.casefold()][target] += 1
    return {source: next(iter(found)) for source, found in targets.items() if len(found) == 1}


def with_terms(pairs: Iterable[Pair], terms: dict[str, str]) -> tuple[list[Pair], list[list[str]]]:
    """The pairs whose reference has, as it is, what the glossary says of a term of their source; and those targets."""
    glossary = Glossary(Term(source, target) for source, target in terms.items())
    some, wanted = [], []
    for pair in pairs:
        found = list(dict.fromkeys(match.target for match in glossary.matches(pair.source)))
        if found and all(target in pair.reference for target in found):
            some.append(pair)
            wanted.append(found)
    return some, wanted


def terms_table(
    pairs: Sequence[Pair], wanted: Sequence[Sequence[str]], ways: dict[str, list[str]], language: str
) -> Iterator[str]:
    """Yield a table with the share of terms that a translation has, and BLEU, by way of asking for them."""
    references, count = [pair.reference for pair in pairs], sum(map(len, wanted))
    yield f"| of {count} terms in {len(pairs)} pairs | {' | '.join(ways)} |"
    yield "|---|" + "---:|" * len(ways)
    shares = (
        100 * sum(term in text for terms, text in zip(wanted, texts, strict=True) for term in terms) / max(count, 1)
        for texts in ways.values()
    )
    yield f"| per cent there | {' | '.join(f'{share:.1f}' for share in shares)} |"
    bleu = (score_by(raw_bleu(language), texts, references, RESAMPLES) for texts in ways.values())
    yield f"| BLEU | {' | '.join(f'{each.value:.2f} ± {each.margin or 0:.2f}' for each in bleu)} |"


if __name__ == "__main__":
    app()
