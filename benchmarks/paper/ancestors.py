"""`python -m benchmarks.paper.ancestors`: the Transformer and what it replaced, at equal parameters and equal time.

A training that was stopped goes on where it was: run the same command again. What a finished one came to is kept
beside the table.
"""

import json
import pathlib
from collections.abc import Sequence
from typing import Annotated

import typer

from benchmarks.errors import BenchmarkError
from benchmarks.paper.ancestors_table import draw, table
from benchmarks.result_files import whole_command_line, write_result
from benchmarks.trials.outcome import Trial
from benchmarks.trials.sizes import check_same_size
from benchmarks.trials.training import Folder, Only, selected, steps_in, train_all
from keras_transformer.commands.console import exit_codes
from keras_transformer.ground.machine import processor_and_cores
from train.config.run import RunConfig, load_config
from train.config.settings import effective_settings
from train.cost.cost import parameter_count

CONFIGS = pathlib.Path("configs/paper")
RESULTS = pathlib.Path("docs/results")
LABELS = {  # of the trial with the configuration configs/paper/NAME.toml, in the table
    "transformer": "transformer",
    "convolutional": "convolutional",
    "recurrent_additive": "recurrent, additive attention",
    "recurrent_dot": "recurrent, dot-product attention",
    "recurrent_none": "recurrent, no attention",
}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    minutes: Annotated[float, typer.Option(min=0.1, help="For which each model trains.")] = 30.0,
    configs: Annotated[pathlib.Path, typer.Option(help="The folder of the configurations.")] = CONFIGS,
    only: Only = None,
    folder: Folder = pathlib.Path("runs/ancestors"),
    results: Annotated[pathlib.Path, typer.Option(help="Folder for ancestors.md and its rows.")] = RESULTS,
) -> None:
    """Train each model for the same time on this machine, and compare them on the validation set."""
    with exit_codes():
        trials = [Trial(name, configs / f"{name}.toml") for name in LABELS]
        selected(trials, only)  # a name that there is not is a mistake to be told before anything is measured
        check_same_size({LABELS[trial.name]: parameters_of(trial) for trial in trials})
        kept = results / "ancestors"
        trials, machine = timed(trials, minutes, folder, kept / "steps.json")
        trained = train_all(trials, only, folder, kept)
        outcomes = {LABELS[name]: outcome for name, outcome in trained.items()}
        configurations = {LABELS[trial.name]: trial.config for trial in trials}
        text = table(outcomes, configurations, minutes, machine, whole_command_line("paper.ancestors"))
        write_result(results / "ancestors.md", text)
        draw(outcomes, minutes, results / "ancestors.png")
    print(text)


def parameters_of(trial: Trial) -> int:
    """The number of parameters of its model, from its configuration."""
    config = load_config(trial.config, trial.overrides)
    return parameter_count(config.transformer_config(config.tokenizer.vocab_size))


def timed(trials: Sequence[Trial], minutes: float, folder: pathlib.Path, note: pathlib.Path) -> tuple[list[Trial], str]:
    """The trials with as many steps as each trains in so many minutes, and the machine on which that was measured.

    All are measured on one machine, one after the other, before the first one trains. Their steps are noted: trained
    on another machine, they are compared at the same time of that first one. Raises BenchmarkError if the note is of
    another time or of other settings.
    """
    configs = {trial.name: load_config(trial.config, trial.overrides) for trial in trials}
    settings = {name: effective_settings(config) for name, config in configs.items()}
    remedy = f"Remove {note.parent} and {folder}, or name other folders with --results and --folder."
    if note.exists():
        noted = json.loads(note.read_text(encoding="utf-8"))
        if noted["minutes"] != minutes:
            raise BenchmarkError(f"{note} has the steps of {noted['minutes']:g} minutes, not of {minutes:g}. {remedy}")
        for name, now in settings.items():
            if name not in noted["steps"]:
                raise BenchmarkError(f"{note} has no steps of {name}, only of {', '.join(noted['steps'])}. {remedy}")
            before = noted["settings"][name]
            keys = sorted(
                before.keys() | {key for key in now if is_set(configs[name], key)}
            )  # others are new: defaults
            if changed := [key for key in keys if before.get(key) != now.get(key)]:
                raise BenchmarkError(f"{note} has the steps of {name} with another {', '.join(changed)}. {remedy}")
    else:
        steps = {trial.name: steps_in(trial, minutes, folder) for trial in trials}
        noted = {"minutes": minutes, "machine": processor_and_cores(), "steps": steps, "settings": settings}
        write_result(note, json.dumps(noted) + "\n")
    trials = [
        trial._replace(overrides=(*trial.overrides, f"training.steps={noted['steps'][trial.name]}")) for trial in trials
    ]
    return trials, noted["machine"]


def is_set(config: RunConfig, key: str) -> bool:
    """Return whether a configuration file, or its overrides, set a key such as "training.steps"."""
    section, _, name = key.partition(".")
    return name in getattr(config, section).model_fields_set


if __name__ == "__main__":
    app()
