"""`python -m benchmarks.quality.decisions RUN SOURCE REFERENCE`: which of several candidates should be written.

The beam's best, minimum Bayes risk, and reranking: by the model's own score per token, which is what a confidence is
made of, and by a reverse model (noisy channel, Yee et al. 2019). Beside BLEU and chrF, translations that are wrong in
an obvious way are counted.
"""

import pathlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, NamedTuple

import typer

from benchmarks.result_files import command_line
from keras_transformer.commands.console import command_app, exit_codes
from keras_transformer.ground.machine import processor_and_cores
from keras_transformer.inspection.bleu import CHRF, raw_bleu, score_by
from keras_transformer.pieces.translation import Translation
from keras_transformer.translation.minimum_bayes_risk import MinimumBayesRisk
from keras_transformer.translation.parallel import tune_for_translation
from keras_transformer.translation.scorer import Scorer
from keras_transformer.translation.translator import Translator
from train.data.files import aligned_pairs

RESAMPLES = 1_000
LONGEST_LOOP, TIMES = 4, 3  # words that come so often, one after the other, are a loop
WEIGHTS = 0.5, 1.0  # of a reverse model's log-probability beside the model's own
HEAD = "| decision | BLEU | chrF | empty | repeated | copied | processor seconds |\n|---|---:|---:|---:|---:|---:|---:|"

app = command_app()


class Wrong(NamedTuple):
    """How many translations are empty, have a loop, and are their source where the reference is not."""

    empty: int
    repeated: int
    copied: int


@app.command()
def measure(
    run: Annotated[str, typer.Argument(metavar="RUN")],
    source: Annotated[pathlib.Path, typer.Argument(metavar="SOURCE", help="Sentences, one per line.")],
    reference: Annotated[pathlib.Path, typer.Argument(metavar="REFERENCE")],
    samples: Annotated[list[int] | None, typer.Option(min=1, help="Draws of a sentence; may be repeated.")] = None,
    temperature: Annotated[list[float] | None, typer.Option(help="Of the draws; may be repeated.")] = None,
    reverse: Annotated[str, typer.Option(metavar="RUN", help="Of the other direction.", show_default="none")] = "",
    lines: Annotated[int, typer.Option(min=1, help="At most; they are spread over the text.")] = 1_000,
    language: Annotated[str, typer.Option(help="Of the references, by which BLEU divides words.")] = "de",
) -> None:
    """Print a table in Markdown."""
    with exit_codes():
        pairs = aligned_pairs(source, reference)
        pairs = pairs[:: -(-len(pairs) // lines)]
        tune_for_translation()
        print(f"{command_line('quality.decisions')} on {processor_and_cores()}\n\n{HEAD}", flush=True)
        translator = Translator.load(run)
        scorer = Scorer.load(reverse) if reverse else None
        for name, decide in decisions(translator, samples or [32], temperature or [1.0], scorer):
            began = time.process_time()
            written = decide([source for source, _ in pairs])
            print(row(name, pairs, written, language, time.process_time() - began), flush=True)
        print(f"\n{len(pairs):,} sentences. BLEU: {score_by(raw_bleu(language), ['a'], ['a']).signature}")


Decide = Callable[[Sequence[str]], list[str]]


def decisions(
    translator: Translator, samples: Sequence[int], temperatures: Sequence[float], reverse: Scorer | None
) -> Iterator[tuple[str, Decide]]:
    """Yield the name of each way to decide, and a function from sources to what is written."""
    yield "the beam's best", lambda lines: [best.text for best in translator.translate(lines)]
    engines = {
        f"{count} draws, temperature {temperature}": MinimumBayesRisk(translator, count, temperature)
        for temperature in temperatures
        for count in samples
    }
    for name, engine in engines.items():
        yield (
            f"minimum Bayes risk, {name}",
            lambda lines, engine=engine: [best.text for best in engine.translate(lines)],
        )
    name, engine = list(engines.items())[-1]
    yield f"highest score per token of the beam and {name}", lambda lines: chosen(lines, engine, score_per_token)
    for weight in WEIGHTS if reverse else ():

        def noisy_channel(line: str, found: Sequence[Translation], weight=weight) -> list[float]:
            back = reverse.score([each.text for each in found], [line] * len(found))
            return [
                (each.score + weight * other.log_probability) / max(len(each.ids), 1)
                for each, other in zip(found, back, strict=True)
            ]

        yield f"noisy channel, weight {weight}, among these", lambda lines, by=noisy_channel: chosen(lines, engine, by)


def score_per_token(line: str, found: Sequence[Translation]) -> list[float]:
    return [each.score / max(len(each.ids), 1) for each in found]


def chosen(
    lines: Sequence[str], engine: MinimumBayesRisk, scores: Callable[[str, Sequence[Translation]], list[float]]
) -> list[str]:
    """Return the candidate of each line with the highest of `scores`; these get candidates whose score is log P."""
    of_beam = engine.beam.with_options({"length_penalty": 0.0}).translate_n_best(lines)
    drawn = [sampler.translate_n_best(lines) for _, sampler in engine.samplers]
    texts = []
    for line, *of_line in zip(lines, of_beam, *drawn, strict=True):
        found = [each for translations in of_line for each in translations]
        values = scores(line, found)
        texts.append(found[values.index(max(values))].text)
    return texts


def row(name: str, pairs: Sequence[tuple[str, str]], texts: Sequence[str], language: str, seconds: float) -> str:
    """Return a row of the table."""
    bleu, chrf = (
        score_by(each, texts, [target for _, target in pairs], RESAMPLES) for each in (raw_bleu(language), CHRF)
    )
    wrong = " | ".join(map(str, wrong_in(pairs, texts)))
    return (
        f"| {name} | {bleu.value:.2f} ± {bleu.margin or 0:.2f} | {chrf.value:.2f} ± {chrf.margin or 0:.2f} | {wrong} "
        f"| {seconds:.0f} |"
    )


def wrong_in(pairs: Sequence[tuple[str, str]], texts: Sequence[str]) -> Wrong:
    """Count translations of pairs that are wrong in an obvious way."""
    rows = [(source.strip(), target.strip(), text.strip()) for (source, target), text in zip(pairs, texts, strict=True)]
    return Wrong(
        empty=sum(bool(target) and not text for _, target, text in rows),
        repeated=sum(has_loop(text) and not has_loop(target) for _, target, text in rows),
        copied=sum(text == source != target for source, target, text in rows),
    )


def has_loop(text: str) -> bool:
    """Return whether up to LONGEST_LOOP words come TIMES times, one after the other."""
    words = text.casefold().split()
    return any(
        words[start : start + length * TIMES] == words[start : start + length] * TIMES
        for length in range(1, LONGEST_LOOP + 1)
        for start in range(len(words) - length * TIMES + 1)
    )


if __name__ == "__main__":
    app()
