"""`python -m benchmarks.ancestors`: the Transformer and what it replaced, at equal parameters and equal training time.

A training that was stopped goes on where it was: run the same command again.
"""

import pathlib
from typing import Annotated

import typer

from benchmarks.result_files import command_line, write_result
from benchmarks.trials.ancestors_table import draw, table
from benchmarks.trials.sizes import check_same_size
from benchmarks.trials.training import Folder, Only, Trial, outcome_of, selected, steps_in, trained
from keras_transformer.console import exit_codes

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
        for trial in selected(trials, only):
            if not outcome_of(trial, folder):
                trained(timed(trial, minutes, folder), folder)
        outcomes = {LABELS[trial.name]: outcome for trial in trials if (outcome := outcome_of(trial, folder))}
        check_same_size({name: outcome.parameters for name, outcome in outcomes.items()})
        text = table(outcomes, minutes, command_line("ancestors"))
        write_result(results / "ancestors.md", text)
        draw(outcomes, results / "ancestors.png")
    print(text)


def timed(trial: Trial, minutes: float, folder: pathlib.Path) -> Trial:
    """The trial with as many steps as it trains in so many minutes."""
    return trial._replace(overrides=(*trial.overrides, f"training.steps={steps_in(trial, minutes, folder)}"))


if __name__ == "__main__":
    app()
