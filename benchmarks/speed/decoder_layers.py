"""`python -m benchmarks.speed.decoder_layers translation`: a decoder with SSRUs beside one with self-attention.

Prints a table of milliseconds and of processor time: of a sentence, by the Translator and by its SavedModel, beam 4, or
with `training` of a step. Random weights; every source and every output has 24 tokens. The decoders take turns, and a
cell is the median of them.
"""

import functools
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Annotated, Literal

import numpy as np
import typer

from benchmarks.speed.translate_work import SOURCE_TOKENS, TARGET_TOKENS, python, write_random_run
from keras_transformer.config import DECODER_LAYERS, TransformerConfig, tiny

SIZES = {width: tiny.replace(vocab_size=6_000, d_model=width, d_ff=2 * width) for width in (128, 256)}
BATCHES = (1, 32)  # lines per call
SENTENCES = {1: 8, 32: 64}  # per turn
STEPS = 3  # of training, per turn
Work = Callable[[], object]


def main(
    what: Annotated[Literal["translation", "training"], typer.Argument(help="What is measured.")],
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each decoder.")] = 9,
    width: Annotated[list[int] | None, typer.Option(help="d_model: 128, 256, or both if left out.")] = None,
) -> None:
    for size in width or SIZES:
        with tempfile.TemporaryDirectory() as folder:
            works_of = {"translation": translation, "training": training}[what]
            works = {
                layer: works_of(SIZES[size].replace(decoder_layer=layer), pathlib.Path(folder) / layer)
                for layer in DECODER_LAYERS
            }
            print(table(size, measured(works, rounds)), flush=True)


def measured(works: Mapping[str, Mapping[str, tuple]], rounds: int) -> dict[str, dict[str, tuple]]:
    """Return seconds and processor seconds of one sentence or step, by what was done and decoder."""
    return {name: take_turns({layer: works[layer][name] for layer in works}, rounds) for name in works["ssru"]}


def translation(config: TransformerConfig, folder: pathlib.Path) -> dict[str, tuple[Work, int]]:
    """Return what is measured by name: a function, and the number of sentences of a call. Writes to folder."""
    from keras_transformer.translation.parallel import tune_for_translation

    tune_for_translation()
    from keras_transformer.search.options import SearchOptions
    from keras_transformer.translation.exported import ExportedTranslator
    from keras_transformer.translation.translator import Translator

    write_random_run(folder / "run", config)
    extra = TARGET_TOKENS - SOURCE_TOKENS
    arguments = ["--no-check", "--signature", "serving_default", "--beam-size", 4, "--extra-length", extra]
    python("-m", "export", folder / "run", "--to", folder / "export", *arguments)
    options = SearchOptions(beam_size=4, extra_length=extra)
    works = {}
    for batch_size in BATCHES:
        lines, count = random_lines(config, SENTENCES[batch_size]), SENTENCES[batch_size]
        translators = {
            "Translator": Translator.load(folder / "run", options, batch_size=batch_size),
            "SavedModel": ExportedTranslator(folder / "export", batch_size),
        }
        for name, translator in translators.items():
            works[f"{name}, {batch_size} a call"] = (lambda one=translator, lines=lines: one.translate(lines)), count
    return works


def random_lines(config: TransformerConfig, count: int) -> list[str]:
    numbers = np.random.default_rng(1).integers(config.vocab_size - 4, size=(count, SOURCE_TOKENS - 1))
    return [" ".join(f"w{number}" for number in row) for row in numbers]


def training(config: TransformerConfig, folder: pathlib.Path) -> dict[str, tuple[Work, int]]:
    """Return functions that train for STEPS on a packed batch of 3,072 tokens, as `keras-transformer train` does."""
    from benchmarks.speed.contestants.ours import packed_batches, repeated, trainer
    from benchmarks.speed.contestants.workload import Workload
    from train.config.training import TrainingConfig
    from train.run import build
    from train.step.training_model import compiled
    from train.workers.strategy import choose_strategy
    from train.workers.workers import Workers

    workload, strategy, works = Workload(config, rows=48, length=64), choose_strategy(), {}
    for name, xla in (("step with XLA", True), ("step without XLA", False)):
        how = TrainingConfig(tokens_per_batch=workload.tokens, row_length=64, xla=xla, precision="float32")
        model = compiled(build(config, how, Workers(strategy)), how, strategy)
        run = trainer(model, repeated(packed_batches(workload).batch(0)))
        works[name] = functools.partial(run, STEPS), STEPS
    return works


def take_turns(works: Mapping[str, tuple[Work, int]], rounds: int) -> dict[str, tuple[float, float]]:
    """Return the median seconds and processor seconds of each, after a turn that does not count."""
    turns = {name: [] for name in works}
    for _ in range(rounds + 1):
        for name, (work, count) in works.items():
            used, started = time.process_time(), time.perf_counter()
            work()
            turns[name].append(((time.perf_counter() - started) / count, (time.process_time() - used) / count))
    return {name: tuple(map(statistics.median, zip(*of_one[1:], strict=True))) for name, of_one in turns.items()}


def table(size: int, found: Mapping[str, Mapping[str, tuple[float, float]]]) -> str:
    """Return milliseconds, and in brackets those of processors, in Markdown; the ratio is of the SSRU's."""
    lines = [f"| {size} wide, 4+4 | self-attention, ms | SSRU, ms | ratio |", "|---|---:|---:|---:|"]
    for name, of_layers in found.items():
        attention, ssru = of_layers["self_attention"], of_layers["ssru"]
        cells = [f"{1e3 * wall:.1f} ({1e3 * used:.1f})" for wall, used in (attention, ssru)]
        ratios = [other / one for one, other in zip(attention, ssru, strict=True)]
        lines.append(f"| {name} | {' | '.join(cells)} | {ratios[0]:.2f} ({ratios[1]:.2f}) |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    typer.run(main)
