"""`python -m benchmarks.recipes.ablation CONFIG`: what each technique is worth to a recipe, one change at a time.

A training that was stopped goes on where it was: run the same command again. What a finished one came to is kept
beside the table, so that they may be done on several machines, some at a time.
"""

import json
import math
import pathlib
from typing import Annotated

import tomli_w
import typer

from benchmarks.errors import BenchmarkError
from benchmarks.recipes.ablation_table import table
from benchmarks.result_files import RESULTS, whole_command_line, write_result
from benchmarks.trials.outcome import Trial
from benchmarks.trials.settings import OF_SELECTION
from benchmarks.trials.training import Folder, Only, train_all
from keras_transformer.commands.console import exit_codes
from train.config.data import DataSection
from train.config.run import RunConfig, check_config, load_config
from train.config.settings import effective_settings

WHOLE = "whole"
OFF = {  # the value of a key with which a technique does nothing, or is the paper's
    "tokenizer.lowercase": False,
    "tokenizer.dummy_prefix": False,
    "model.norm": "post",
    "training.bpe_dropout": 0.0,
    "training.label_smoothing": 0.0,
    "training.dropout": 0.0,
    "training.average_checkpoints": 1,
    "training.cooldown_steps": 0,
    "training.keep_best": False,
    "training.ema_decay": 1e-9,  # TOML has no null to unset a key: an average that is the weights themselves
    "training.clip_norm": 1e9,  # and a norm that no gradient has
}

ADDED = {  # what a recipe without the technique is tried with: the values of docs/training.md
    "training.bpe_dropout": 0.1,
    "training.ema_decay": 0.999,
}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    config: Annotated[pathlib.Path, typer.Argument(help="The whole recipe.")],
    only: Only = None,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Train all rows for so many updates, with cool-down, checkpoints and validations in proportion.",
        ),
    ] = None,
    folder: Folder = pathlib.Path("runs/ablation"),
    results: Annotated[
        pathlib.Path,
        typer.Option(show_default="benchmarks/results", help="Folder for ablation_CONFIG.md and its rows."),
    ] = RESULTS,
) -> None:
    """Train the recipe, then without each technique it uses and with each it does not, and compare on validation."""
    with exit_codes():
        recipe, full = load_config(config), None
        if steps:
            full, recipe = recipe.training.steps, shortened(recipe, steps)
            config = folder / f"{config.stem}_{steps}_steps.toml"
            write_result(config, toml_of(recipe))
        trials, name = trials_of(config, recipe), f"ablation_{config.stem}"
        outcomes = train_all(trials, only, folder / config.stem, results / name)
        if WHOLE not in outcomes:
            raise BenchmarkError(f"The recipe itself has not been trained: leave --only out, or name {WHOLE} in it.")
        changes = {trial.name: trial.change for trial in trials}
        text = table(recipe, outcomes, changes, whole_command_line("recipes.ablation"), full)
        write_result(results / f"{name}.md", text)
    print(text)


def trials_of(path: pathlib.Path, recipe: RunConfig) -> list[Trial]:
    """The whole recipe, one trial per technique that it uses, without it, and one per technique of ADDED, with it.

    Text that is added to the first entry of data.train, such as distilled text, is a technique too.
    """
    settings = effective_settings(recipe)  # without keys that are not set, or of another kind of model
    used = [(key, off) for key, off in OFF.items() if key in settings and settings[key] != off]
    also = {}
    if recipe.training.best_metric != "bleu" and not recipe.training.patience:  # then only keep_best goes by it
        also["training.keep_best"] = ('training.best_metric="bleu"',)
    added = ADDED | {"training.cooldown_steps": math.ceil(recipe.training.steps / 3)}
    unused = [(key, value) for key, value in added.items() if settings.get(key, OFF[key]) == OFF[key]]
    return [
        Trial(WHOLE, path),
        *without_entries(path, recipe.data),
        *(changed(path, "without", key, value, also.get(key, ())) for key, value in used),
        *(changed(path, "with", key, value) for key, value in unused),
    ]


def changed(
    path: pathlib.Path, word: str, key: str, value: bool | int | float | str, also: tuple[str, ...] = ()
) -> Trial:
    """The recipe with one key changed, and settings that go with it.

    A change in the selection of weights alone goes on from the whole recipe.
    """
    return Trial(
        f"{word}_{key.rpartition('.')[2]}",
        path,
        (f"{key}={json.dumps(value)}", *also),
        same_updates_as=WHOLE if key in OF_SELECTION else None,
    )


def shortened(recipe: RunConfig, steps: int) -> RunConfig:
    """The recipe with so many updates, and cool-down, checkpoints and validations in proportion.

    The warm-up stays, since it decides the learning rate of all updates after it. Raises ConfigError for a recipe that
    does not fit into them, and BenchmarkError if they are not fewer.
    """
    training, share = recipe.training, steps / recipe.training.steps
    if share >= 1:
        raise BenchmarkError(
            f"--steps is {steps:,}, and the recipe has {training.steps:,}: give fewer, or leave it out."
        )
    settings = recipe.model_dump(exclude_none=True, exclude_unset=True)  # a default may not be asked for everywhere
    settings["training"] = settings.get("training", {}) | {
        "steps": steps,
        "cooldown_steps": math.ceil(share * training.cooldown_steps),
        "checkpoint_every": max(1, round(share * training.checkpoint_every)),
        "validate_every": max(1, round(share * training.validate_every)),
    }
    return check_config(settings, f"the recipe with {steps:,} updates")


def toml_of(recipe: RunConfig) -> str:
    """The configuration as a file that asks for no more than it does: `RunConfig.to_toml` has all defaults too."""
    return tomli_w.dumps(recipe.model_dump(exclude_none=True, exclude_unset=True))


def without_entries(path: pathlib.Path, data: DataSection) -> list[Trial]:
    """One trial per entry of data.train but the first, without that entry; none if the data are not of files."""
    if data.source != "files":
        return []
    entries, trials = data.model_dump(exclude_none=True)["train"], []
    for place, entry in enumerate(data.entries("train")[1:], start=1):
        rest = inline(entries[:place] + entries[place + 1 :])
        label = f"without {entry.description}"
        trials.append(Trial(f"without_train_{place + 1}", path, (f"data.train={rest}",), label=label))
    return trials


def inline(entries: list) -> str:
    """A list as a value of TOML: a list of tables alone would become sections."""
    return "[" + tomli_w.dumps({"entries": [[], *entries]}).partition("[],")[2]


if __name__ == "__main__":
    app()
