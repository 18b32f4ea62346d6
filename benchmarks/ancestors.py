"""`python -m benchmarks.ancestors`: the Transformer and what it replaced, at equal parameters and equal training time.

A training that was stopped goes on where it was: run the same command again.
"""

import pathlib
from typing import Annotated

import typer

from benchmarks.trials.ancestors_table import draw, table
from benchmarks.trials.training import Folder, Only, Outcome, Trial, command, outcome_of, selected, steps_in, trained
from benchmarks.worker import BenchmarkError
from keras_transformer.console import exit_codes
from keras_transformer.files import write_atomically

RESULTS = pathlib.Path("docs/results")
CONFIGS = {  # from the name of a trial to its configuration
    "transformer": "multi30k_en_de_transformer",
    "convolutional": "multi30k_en_de_convolutional",
    "recurrent, additive attention": "multi30k_en_de_recurrent_additive",
    "recurrent, dot-product attention": "multi30k_en_de_recurrent_dot",
    "recurrent, no attention": "multi30k_en_de_recurrent_none",
}
MOST_APART = 0.05  # by which parameters may differ

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
        trials = [
            Trial(name.replace(", ", "_").replace(" ", "_"), configs / f"{file}.toml") for name, file in CONFIGS.items()
        ]
        for trial in selected(trials, only):
            if not outcome_of(trial, folder):
                trained(timed(trial, minutes, folder), folder)
        outcomes = {
            name: outcome for name, trial in zip(CONFIGS, trials, strict=True) if (outcome := outcome_of(trial, folder))
        }
        check_parameters(outcomes)
        write_atomically(results / "ancestors.md", table(outcomes, minutes, command()))
        draw(outcomes, results / "ancestors.png")
    print(table(outcomes, minutes, command()))


def timed(trial: Trial, minutes: float, folder: pathlib.Path) -> Trial:
    """The trial with as many steps as it trains in so many minutes."""
    return trial._replace(overrides=(*trial.overrides, f"training.steps={steps_in(trial, minutes, folder)}"))


def check_parameters(outcomes: dict[str, Outcome]) -> None:
    """Raises BenchmarkError unless all models have about equally many parameters."""
    counts = {name: outcome.parameters for name, outcome in outcomes.items()}
    if counts and max(counts.values()) > (1 + MOST_APART) * min(counts.values()):
        found = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        raise BenchmarkError(
            f"The models must have equally many parameters, {MOST_APART:.0%} apart at most; found {found}."
        )


if __name__ == "__main__":
    app()
