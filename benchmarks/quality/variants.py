"""`python -m benchmarks.quality.variants`: variants of the Transformer, at equal parameters and equal updates.

A training that was stopped goes on where it was: run the same command again. What a finished one came to is kept in
variants/trials.jsonl.gz beside the table, a line each, and is not trained again.
"""

import functools
import pathlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from benchmarks.errors import BenchmarkError, names_in
from benchmarks.quality.optimizers import BASE, OPTIMIZERS, rate_of
from benchmarks.quality.rates_and_seeds import ended, of_length, order
from benchmarks.quality.variants_table import LENGTHS, WITH, Training, draw, table
from benchmarks.result_files import RESULTS, whole_command_line, write_result
from benchmarks.trials.outcome import Trial, step_seconds
from benchmarks.trials.sizes import check_same_size
from benchmarks.trials.training import Folder, Only, check_all, seconds_per_step, trained
from keras_transformer.commands.console import exit_codes
from keras_transformer.config import TransformerConfig
from keras_transformer.ground.imports import quiet_imports
from keras_transformer.runs.run_folder import RunFolder
from train.config.run import RunConfig, load_config
from train.cost.cost import parameter_count
from train.report.curves import read_curves

PRE = 'model.norm="pre"'
VARIANTS = {  # what each row changes in the paper's model: most of them one thing of the row "pre"
    "paper": (),
    "pre": (PRE,),
    "rms": (PRE, 'model.norm_kind="rms"'),
    "swiglu": (PRE, 'model.activation="swiglu"'),
    "geglu": (PRE, 'model.activation="geglu"'),
    "rotary": (PRE, 'model.positions="rotary"'),
    "relative": (PRE, 'model.positions="relative"'),
    "alibi": (PRE, 'model.positions="alibi"'),
    "learned": (PRE, 'model.positions="learned"', "model.max_positions=256"),
    "shifted": (PRE, "training.shift_positions=500"),
    "guided": (PRE, "training.guided_alignment=0.05"),
    "embedding_norm": (PRE, "model.embedding_norm=true"),
    "modern": (PRE, 'model.norm_kind="rms"', 'model.activation="swiglu"', 'model.positions="rotary"'),
}
RATES = (1.0, 2.0, 0.5)  # of the configuration's learning rate: each row has the best one by its first seed
MUON = "muon"  # with which all rows are trained too: see benchmarks.quality.optimizers
MOST_APART = 0.02  # by which numbers of parameters may differ
MULTIPLE = 8  # of which d_ff is one
BESIDE = 100  # seconds of a training beside its steps: start, compilation, validations, three texts to translate
RESAMPLES = 1_000

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def rows(variants: Iterable[str], optimizers: Iterable[str] = (BASE, MUON)) -> list[str]:
    """The names of the rows of some variants with some optimizers."""
    endings = ["" if optimizer == BASE else f"{WITH}{optimizer}" for optimizer in optimizers]
    return [f"{variant}{ending}" for ending in endings for variant in variants]


class Series(NamedTuple):
    """What all trainings share."""

    config: pathlib.Path
    shared: tuple[str, ...]  # settings of every training
    seeds: int

    def trial(self, name: str, rate: float, seed: int) -> Trial:
        """The training of a variant with a part of the configuration's learning rate."""
        variant, _, optimizer = name.partition(WITH)
        changes, usual = OPTIMIZERS[optimizer or BASE]
        settings = (*self.shared, *VARIANTS[variant])
        settings += (f"model.d_ff={width(self.config, settings)}", *changes)
        settings += rate_of(load_config(self.config, self.shared), changes, rate * usual)
        return Trial(f"{name}_rate_{rate:g}_seed_{seed}", self.config, (*settings, f"training.seed={seed}"))

    def trainings(self, kept: pathlib.Path) -> list[Training]:
        """All that have ended."""
        return ended(self.trial, rows(VARIANTS), RATES, self.seeds, kept)

    def order(self, names: Sequence[str], kept: pathlib.Path) -> Iterator[Trial]:
        """What to train, one after the other, see `rates_and_seeds.order`."""
        return order(self.trial, names, RATES, self.seeds, kept)


@app.command()
def main(
    config: Annotated[pathlib.Path, typer.Argument(help="Its model is the row (paper).")] = pathlib.Path(
        "configs/paper/variants.toml"
    ),
    only: Only = None,
    optimizer: Annotated[
        str, typer.Option(help=f"With which to train: {BASE}, {MUON} or both, {BASE},{MUON}. The table has both.")
    ] = BASE,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings of each variant at its best learning rate.")] = 3,
    steps: Annotated[
        int | None,
        typer.Option(min=10, help="Updates, with warm-up, cool-down, checkpoints and validations in proportion."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print what would be trained and for how long, by 60 steps of the paper's."),
    ] = False,
    folder: Folder = pathlib.Path("runs/variants"),
    results: Annotated[
        pathlib.Path,
        typer.Option(show_default="benchmarks/results", help="Folder for variants.md, variants.png and their rows."),
    ] = RESULTS,
) -> None:
    """Train each variant with three learning rates and several seeds; write a table and a picture after each."""
    with exit_codes():
        wanted = names_in(only or ",".join(VARIANTS), VARIANTS, "variant")
        names = rows(wanted, names_in(optimizer, (BASE, MUON), "optimizer"))
        base, kept = load_config(config), results / "variants"
        series = Series(config, of_length(base, steps) if steps else (), seeds)
        first = [series.trial(name, rate, 1) for rate in RATES for name in names]
        check_same_size({trial.name: parameters_of(trial) for trial in first}, MOST_APART)
        if dry_run:
            print("\n".join(estimate(series, names, kept, folder)))
            return
        check_all(first, first, folder, kept)
        for trial in series.order(names, kept):
            print(f"{trial.name}: {' '.join(trial.overrides)}", file=sys.stderr, flush=True)
            trained(trial, folder, kept, functools.partial(measures, base))
            text = table(base, series.trainings(kept), whole_command_line("quality.variants"))
            write_result(results / "variants.md", text)
            draw(series.trainings(kept), results / "variants.png")
    print(text)


def model_of(config: pathlib.Path, settings: Sequence[str]) -> TransformerConfig:
    """The model of a configuration with these settings. Raises BenchmarkError if it is no Transformer."""
    run = load_config(config, settings)
    model = run.transformer_config(run.tokenizer.vocab_size)
    if not isinstance(model, TransformerConfig):
        raise BenchmarkError(
            f"Variants are of a Transformer, and the model of {config} is of the kind {model.kind!r}. Give a "
            'configuration with model.kind = "transformer".'
        )
    return model


def parameters_of(trial: Trial) -> int:
    """The number of parameters of its model."""
    return parameter_count(model_of(trial.config, trial.overrides))


def width(config: pathlib.Path, settings: Sequence[str]) -> int:
    """The d_ff, a multiple of 8, with which a variant has as many parameters as the model of the configuration."""
    base, model = model_of(config, ()), model_of(config, settings)
    of_column = parameter_count(model.replace(d_ff=2)) - parameter_count(model.replace(d_ff=1))
    lacking = parameter_count(base) - parameter_count(model)
    return base.d_ff if not lacking else MULTIPLE * round((model.d_ff + lacking / of_column) / MULTIPLE)


def estimate(series: Series, names: Sequence[str], kept: pathlib.Path, folder: pathlib.Path) -> Iterator[str]:
    """Say what would be trained, in which order, and for how long on this machine."""
    seconds = seconds_per_step(series.trial("paper", 1.0, 1), folder)
    asked = [(name, f"{rate:g}", 1) for rate in RATES for name in names]
    asked += [(name, "the better one", seed) for seed in range(2, series.seeds + 1) for name in names]
    for name, rate, seed in asked:
        trial = series.trial(name, RATES[0], seed)
        model = model_of(trial.config, trial.overrides)
        yield f"{name}, rate {rate}, seed {seed}: d_ff {model.d_ff:,}, {parameters_of(trial):,} parameters"
    steps = load_config(series.config, series.shared).training.steps
    each, left = (BESIDE + steps * seconds) / 60, len(asked) - sum(one.name in names for one in series.trainings(kept))
    yield f"{steps:,} updates of {seconds:.2f} s, and {BESIDE} s beside them: {each:.1f} minutes for each training."
    yield f"{left} trainings have not ended: {left * each / 60:.1f} hours."


def measures(base: RunConfig, run: pathlib.Path) -> dict[str, Any]:
    """What is kept of a run beside its scores: losses of validations, time of a step, BLEU of the test set by length.

    base: its data.test is translated as it is, and with sentences joined to texts of twice and four times the length.
    """
    with quiet_imports():  # which take seconds
        from benchmarks.recipes.robustness import joined
        from keras_transformer.inspection.bleu import raw_bleu, score_by
        from keras_transformer.translation.translator import Translator
        from train.data.prepare import load_test_split

    curves = read_curves(RunFolder(run).metrics)
    translator = Translator.load(run, base.translation.search_options(base.translation.beam_size))
    pairs, bleu = list(load_test_split(base.data)), {}
    for together in LENGTHS:
        sources, references = zip(*joined(pairs, together)[::together], strict=True)
        texts = [translation.text for translation in translator.translate(sources)]
        score = score_by(raw_bleu(base.data.target_language), texts, references, RESAMPLES)
        bleu[str(together)] = score.as_json() | {"empty": sum(not text.strip() for text in texts)}
    return {
        "losses": curves["validation/loss"].tolist(),
        "seconds_per_step": float(np.median(step_seconds(curves))),
        "bleu": bleu,
    }


if __name__ == "__main__":
    app()
