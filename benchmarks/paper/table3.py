"""`python -m benchmarks.paper.table3 CONFIG`: rows of the paper's Table 3 (Vaswani et al. 2017) on a small corpus.

A row that was stopped goes on where it was: run the same command again. What a finished row came to is kept beside the
table, so that rows may be trained on several machines, some at a time.
"""

import pathlib
from typing import Annotated

import typer

from benchmarks.errors import BenchmarkError
from benchmarks.paper.table3_rows import ROWS, SEEDS, overrides_of
from benchmarks.paper.table3_table import table
from benchmarks.result_files import RESULTS, whole_command_line, write_result
from benchmarks.trials.outcome import Trial
from benchmarks.trials.training import Folder, Only, train_all
from keras_transformer.commands.console import exit_codes
from train.config.run import RunConfig, load_config

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    config: Annotated[pathlib.Path, typer.Argument(help="Its model is the row (base).")] = pathlib.Path(
        "configs/paper/table3.toml"
    ),
    only: Only = None,
    folder: Folder = pathlib.Path("runs/table3"),
    results: Annotated[
        pathlib.Path, typer.Option(show_default="benchmarks/results", help="Folder for table3.md and its rows.")
    ] = RESULTS,
) -> None:
    """Train the rows with the same steps and seed, and print their perplexity and BLEU on the validation set."""
    with exit_codes():
        base = load_config(config)
        outcomes = train_all(trials_of(config, base), only, folder, results / "table3")
        text = table(base, outcomes, whole_command_line("paper.table3"))
        write_result(results / "table3.md", text)
    print(text)


def trials_of(path: pathlib.Path, base: RunConfig) -> list[Trial]:
    """One trial per row of Table 3, and base with other seeds; the row (base) is the configuration as it stands.

    Raises BenchmarkError if its model is no Transformer.
    """
    if base.model.kind != "transformer":
        raise BenchmarkError(
            f"Table 3 varies a Transformer, and the model of {path} is of the kind {base.model.kind!r}. Give a "
            'configuration with model.kind = "transformer".'
        )
    model = base.transformer_config(base.tokenizer.vocab_size)
    rows = [Trial(row.name, path, overrides_of(row, model)) for row in ROWS]
    return rows + [Trial(name, path, (f"training.seed={seed}",)) for name, seed in SEEDS.items()]


if __name__ == "__main__":
    app()
