"""`python -m benchmarks.ancestors`: the Transformer and what it replaced, at equal parameters and equal training time.

A training that was stopped goes on where it was: run the same command again.
"""

import json
import pathlib
from typing import Annotated

import typer

from benchmarks.result_files import command_line, write_result
from benchmarks.trials.ancestors_table import draw, table
from benchmarks.trials.settings import check_settings, has_begun
from benchmarks.trials.sizes import check_same_size
from benchmarks.trials.training import (
    Folder,
    Only,
    Trial,
    has_ended,
    outcome_of,
    selected,
    settings_of,
    steps_in,
    trained,
)
from benchmarks.worker import BenchmarkError
from keras_transformer.console import exit_codes
from train.config import load_config
from train.evaluation.cost import parameter_count

RESULTS = pathlib.Path("docs/results")
LABELS = {  # of the trial with the configuration multi30k_en_de_NAME.toml, in the table
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
    configs: Annotated[pathlib.Path, typer.Option(help="The folder of the configurations.")] = pathlib.Path("configs"),
    only: Only = None,
    folder: Folder = pathlib.Path("runs/ancestors"),
    results: Annotated[pathlib.Path, typer.Option(help="Folder for ancestors.md and ancestors.png.")] = RESULTS,
) -> None:
    """Train each model for the same time on this machine, and compare them on the validation set."""
    with exit_codes():
        trials = [Trial(name, configs / f"multi30k_en_de_{name}.toml") for name in LABELS]
        chosen = selected(trials, only)
        compared = [trial for trial in trials if trial in chosen or has_ended(trial, folder)]
        check_same_size({LABELS[trial.name]: parameters_of(trial) for trial in compared})
        for trial in compared:
            if has_begun(folder / trial.name):  # checked now, not after hours of training
                check_settings(folder / trial.name, trial.config, settings_of(timed(trial, minutes, folder)))
        for trial in chosen:
            trained(timed(trial, minutes, folder), folder)
        outcomes = {LABELS[trial.name]: outcome_of(timed(trial, minutes, folder), folder) for trial in compared}
        text = table(outcomes, minutes, command_line("ancestors"))
        write_result(results / "ancestors.md", text)
        draw(outcomes, results / "ancestors.png")
    print(text)


def parameters_of(trial: Trial) -> int:
    """The number of parameters of its model, from its configuration."""
    config = load_config(trial.config, trial.overrides)
    return parameter_count(config.transformer_config(config.tokenizer.vocab_size))


def timed(trial: Trial, minutes: float, folder: pathlib.Path) -> Trial:
    """The trial with as many steps as it trains in so many minutes: when a run begins, they are noted beside it.

    Raises BenchmarkError if it has begun for another time.
    """
    note, path = folder / f"{trial.name}_steps.json", folder / trial.name
    if has_begun(path) and note.exists():
        noted = json.loads(note.read_text(encoding="utf-8"))
        if noted["minutes"] != minutes:
            raise BenchmarkError(
                f"{path} is a run of {noted['minutes']:g} minutes, not of {minutes:g}. Remove that folder, or name "
                "another one with --folder."
            )
    else:
        noted = {"minutes": minutes, "steps": steps_in(trial, minutes, folder)}
        write_result(note, json.dumps(noted) + "\n")
    return trial._replace(overrides=(*trial.overrides, f"training.steps={noted['steps']}"))


if __name__ == "__main__":
    app()
