"""`python -m benchmarks.inspection_cost`: how much of a training's time what TensorBoard shows takes.

Every function that measures or writes for TensorBoard is timed inside a real training at its defaults, beside the
updates of the same run, so that a noisy machine slows both.
"""

import contextlib
import json
import pathlib
import pkgutil
import tempfile
import time
from collections.abc import Iterator
from typing import Annotated
from unittest import mock

import typer

from benchmarks.result_files import write_result
from keras_transformer.commands.console import exit_codes, prepare_process
from keras_transformer.machine import processor_and_cores
from train.config.run import load_config

RESULT = pathlib.Path("benchmarks/results/inspection_cost.md")
CONFIG = """
run_folder = {folder}

[data]
source = "files"
source_language = "en"
target_language = "de"
train = [["{data}/train.en.gz", "{data}/train.de.gz"]]
validation = [["{data}/val.en.gz", "{data}/val.de.gz"]]

[model]
preset = "tiny"

[training]
steps = {steps}
tokens_per_batch = 3072
source_row_length = 124
validate_every = {steps}
checkpoint_every = {steps}

[translation]
validation_sentences = 100
"""
TIMED = {  # what it is -> where it is done; each is called in the thread that trains
    "numbers of each step": "train.loop.callbacks.AfterEachUpdate.write_metrics",
    "weights before an inspected step": "train.step.training_model.TrainingModel.before_update",
    "histograms, ratios of updates": "train.loop.callbacks.AfterEachUpdate.write_inspection",
    "sample translations": "keras_transformer.inspection.callbacks.SampleTranslations.inspect",
    "pictures and curves of attention": "keras_transformer.inspection.callbacks.AttentionPictures.inspect",
    "residual stream": "keras_transformer.inspection.residual_stream.ResidualStream.inspect",
    "graph": "train.loop.fit.graph_summary",
}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    steps: Annotated[int, typer.Option(min=2, help="Updates.")] = 500,
    data: Annotated[pathlib.Path, typer.Option(help="The folder of Multi30k.")] = pathlib.Path("data/multi30k"),
    to: Annotated[pathlib.Path, typer.Option(help="The file to write the table to.")] = RESULT,
) -> None:
    """Train the tiny preset, and print what share of its updates' time each part takes."""
    prepare_process(is_long=True)
    from train.run import run

    with exit_codes(), tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "config.toml"
        values = {"folder": json.dumps(f"{folder}/run"), "data": data, "steps": steps}
        config.write_text(CONFIG.format(**values), encoding="utf-8")
        with timed(TIMED) as seconds:
            run(load_config(config))
        lines = (pathlib.Path(folder) / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        updates = update_seconds(map(json.loads, lines))
        text = table(seconds, updates)
        print(text)
        write_result(to, text)


@contextlib.contextmanager
def timed(places: dict[str, str]) -> Iterator[dict[str, list[float]]]:
    """Within, the functions at `places`, "module.Class.name", are timed. Yields the seconds of each call, by name."""
    seconds = {name: [] for name in places}
    with contextlib.ExitStack() as stack:
        for name, place in places.items():
            stack.enter_context(mock.patch(place, stopwatch(place, seconds[name])))
        yield seconds


def stopwatch(place: str, seconds: list[float]):
    """Return the function at `place` as one that appends its seconds."""
    function = pkgutil.resolve_name(place)

    def run(*arguments, **named):
        began = time.perf_counter()
        try:
            return function(*arguments, **named)
        finally:
            seconds.append(time.perf_counter() - began)

    return run


def update_seconds(records: Iterator[dict]) -> list[float]:
    """Return the seconds of each update but the first, which compiles."""
    return [record["train/seconds_in_step"] for record in records if "train/seconds_in_step" in record][1:]


def table(seconds: dict[str, list[float]], updates: list[float]) -> str:
    """Return the result as Markdown: the seconds of each part, and their share of those of the updates."""
    steps, total = len(updates) + 1, sum(updates) * (len(updates) + 1) / len(updates)
    lines = [
        "# What inspection costs", "",
        f"`python -m benchmarks.inspection_cost` on {processor_and_cores()}: {steps} updates of the "
        f"tiny preset, 3,072 target positions each, {total / steps * 1000:.0f} ms per update; one validation.", "",
        "| | calls | seconds | share of the updates |", "|---|---:|---:|---:|",
    ]  # fmt: skip
    for name, calls in seconds.items():
        lines.append(f"| {name} | {len(calls)} | {sum(calls):.2f} | {sum(calls) / total:.2%} |")
    whole = sum(map(sum, seconds.values()))
    lines.append(f"| **all** | | {whole:.2f} | **{whole / total:.2%}** |")
    return "\n".join([*lines, "", "The validation itself, its loss and its translations, is not counted.", ""])


if __name__ == "__main__":
    app()
