"""`python -m benchmarks.quality.optimizers CONFIG`: optimizers by the updates and seconds to one validation loss.

A training that was stopped goes on where it was: run the same command again. What a finished one came to is kept in
optimizers/trials.jsonl.gz beside the table, a line each, and is not trained again.
"""

import functools
import pathlib
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from benchmarks.errors import names_in
from benchmarks.quality.rates_and_seeds import ended, of_length, order
from benchmarks.quality.variants_table import (
    Training,
    chosen,
    mean_losses,
    outcomes_of,
    rates,
    spread,
    updates_to,
    with_interval,
)
from benchmarks.result_files import RESULTS, whole_command_line, write_result
from benchmarks.trials.outcome import Trial, commits_sentence, machines, mark, step_seconds
from benchmarks.trials.training import Folder, Only, check_all, trained
from keras_transformer.commands.console import exit_codes
from keras_transformer.runs.run_folder import RunFolder
from train.config.run import RunConfig, load_config
from train.report.curves import read_curves

BASE = "adam"
COSINE = ("training.schedule=cosine", "training.cooldown_steps=0")
OPTIMIZERS = {  # what each row changes, and its usual rate as a multiple of Adam's
    BASE: ((), 1.0),
    "adam_cosine": (COSINE, 1.0),
    "adamw": (("training.optimizer=adamw", *COSINE), 1.0),
    "schedule_free": (
        ("training.optimizer=schedule_free", "training.schedule=warmup", "training.cooldown_steps=0")
        + ("training.ema_decay=null",),
        2.0,
    ),
    "muon": (("training.optimizer=muon", *COSINE), 1.0),
    "lion": (("training.optimizer=lion", *COSINE), 0.2),
    "adafactor": (("training.optimizer=adafactor", *COSINE), 5.0),
}
RATES = (1.0, 0.5, 2.0)  # of the usual rate: each optimizer has the best one by its first seed
VALIDATIONS = 40  # of each training, without translations
HEAD = "| | schedule | peak rate | seeds | validation loss | updates | seconds | ms per step | BLEU of validation |"
NOTE = """
All rows have the same pairs, tokenizer, model, batches and updates. Three learning rates were tried per row with the
first seed; the other seeds have the one whose last validation loss is lowest. Nothing was chosen by the test set, which
is not read. A cell is the mean over seeds, in brackets the lowest and the highest. Updates are those after which the
mean loss of a row is the one named above, between validations by a straight line; seconds are these times the median of
a step, without validations. Compare them on one machine only, and beside the same other work.
"""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Series(NamedTuple):
    """What all trainings share."""

    config: pathlib.Path
    shared: tuple[str, ...]  # settings of every training

    def trial(self, name: str, rate: float, seed: int) -> Trial:
        """The training with an optimizer at a part of its usual peak rate."""
        changes, usual = OPTIMIZERS[name]
        base = load_config(self.config, self.shared)
        settings = (*self.shared, *changes, f"training.seed={seed}", *rate_of(base, changes, rate * usual))
        return Trial(f"{name}_rate_{rate:g}_seed_{seed}", self.config, settings)


def rate_of(base: RunConfig, changes: Sequence[str], share: float) -> tuple[str, ...]:
    """The settings of a share of the configuration's peak rate, for its own schedule or for another."""
    if not changes and base.training.schedule == "paper":
        return (f"training.learning_rate_factor={share * base.training.learning_rate_factor:g}",)
    return "training.learning_rate_factor=null", f"training.learning_rate={share * peak_rate(base):.4g}"


def peak_rate(config: RunConfig) -> float:
    """The highest learning rate of a configuration."""
    training = config.training
    if training.schedule != "paper":
        return training.learning_rate
    d_model = config.transformer_config(config.tokenizer.vocab_size).d_model
    return training.learning_rate_factor * (d_model * training.warmup_steps) ** -0.5


@app.command()
def main(
    config: Annotated[
        pathlib.Path, typer.Argument(help="Its optimizer is the row (adam): with a test set or without.")
    ],
    only: Only = None,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings of each optimizer at its best learning rate.")] = 3,
    steps: Annotated[
        int | None, typer.Option(min=10, help="Updates, with warm-up, cool-down and checkpoints in proportion.")
    ] = None,
    loss: Annotated[
        float | None, typer.Option(help="Validation loss to be reached; left out: that with which adam ends.")
    ] = None,
    folder: Folder = pathlib.Path("runs/optimizers"),
    results: Annotated[
        pathlib.Path, typer.Option(show_default="benchmarks/results", help="Folder for optimizers.md and its rows.")
    ] = RESULTS,
) -> None:
    """Train with each optimizer at three learning rates and with several seeds; write a table after each training."""
    with exit_codes():
        names, base = names_in(only or ",".join(OPTIMIZERS), OPTIMIZERS, "optimizer"), load_config(config)
        kept = results / "optimizers"
        length = of_length(base, steps) if steps else ()
        every = max(1, (steps or base.training.steps) // VALIDATIONS)
        series = Series(config, (*length, f"training.validate_every={every}", "translation.validation_sentences=1"))
        first = [series.trial(name, rate, 1) for rate in RATES for name in names]
        check_all(first, first, folder, kept)
        for trial in order(series.trial, names, RATES, seeds, kept):
            print(f"{trial.name}: {' '.join(trial.overrides)}", file=sys.stderr, flush=True)
            trained(trial, folder, kept, measures)
            trainings = ended(series.trial, OPTIMIZERS, RATES, seeds, kept)
            text = table(trainings, functools.partial(settings_of, series), loss)
            write_result(results / "optimizers.md", text)
    print(text)


def settings_of(series: Series, one: Training) -> tuple[str, float]:
    """The schedule of a training, and its peak rate."""
    config = load_config(series.config, series.trial(*one[:3]).overrides)
    return config.training.schedule, peak_rate(config)


def measures(run: pathlib.Path) -> dict[str, Any]:
    """What is kept of a run beside its scores: losses of validations, and the time of a step."""
    curves = read_curves(RunFolder(run).metrics)
    seconds = float(np.median(step_seconds(curves)))
    return {"losses": curves["validation/loss"].tolist(), "seconds_per_step": seconds}


def table(trainings: Sequence[Training], settings_of: Any, loss: float | None) -> str:
    """Return optimizers.md. Optimizers of which nothing has ended are left out.

    settings_of: from a Training to its schedule and its peak rate.
    """
    rows, outcomes = chosen(trainings), outcomes_of(trainings)
    if loss is None:
        loss = float(mean_losses(rows[BASE])[-1, 1]) if BASE in rows else np.nan
    lines = [
        "# Optimizers to one validation loss",
        "",
        f"`{whole_command_line('quality.optimizers')}` on {machines(outcomes.values())}: "
        f"{trainings[0].outcome.steps:,} updates; {len(trainings)} trainings. The loss of the columns updates and "
        f"seconds is {loss:.3f}.",
        "",
        HEAD,
        "|---|---|" + "---:|" * (HEAD.count("|") - 3),
    ]
    for own in rows.values():
        seconds = float(np.mean([one.outcome.measures["seconds_per_step"] for one in own]))
        updates, (schedule, rate) = updates_to(loss, mean_losses(own)), settings_of(own[0])
        reached = [f"{updates:,.0f}", f"{updates * seconds:,.0f}"] if np.isfinite(updates) else ["never", "never"]
        cells = [own[0].name, schedule, f"{rate:.2g}", f"{len(own)}", spread([one.loss for one in own], 3), *reached]
        cells.append(f"{1000 * seconds:.0f}{mark(own[0].outcome, [*outcomes.values()])}")
        cells.append(with_interval([one.outcome.score("BLEU") for one in own]))
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", *rates(trainings), ""] + ([commits_sentence(outcomes), ""] if commits_sentence(outcomes) else [])
    return "\n".join([*lines, NOTE.strip(), ""])


if __name__ == "__main__":
    app()
