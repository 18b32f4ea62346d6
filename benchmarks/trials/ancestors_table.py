"""The Transformer beside its ancestors, as a table and a picture."""

import json
import pathlib

import numpy as np

from benchmarks.trials.training import Outcome
from keras_transformer.machine import processor_and_cores
from keras_transformer.run_folder import RunFolder
from train.evaluation.figures import BLUE, GREEN, GREY, ORANGE, new_figure, save

COLOURS = (BLUE, ORANGE, GREEN, GREY, "#CC79A7", "#56B4E9")
NOTE = """
Every model trains on the same pairs with the same tokenizer, loss and batches, from its committed configuration, for as
many steps as it makes in that time on this machine, and has about the same number of parameters. Scores are of the
validation set, which also chose between the last and the averaged weights; the intervals are of 1,000 resamples. One
seed each. Training minutes are those of the steps, compilation included; all minutes have validations and checkpoints
in them too.
"""


def table(outcomes: dict[str, Outcome], minutes: float, command: str) -> str:
    """Return ancestors.md; `outcomes` by the name of the model."""
    lines = [
        "# What attention replaced",
        "",
        f"`{command}` on {processor_and_cores()}: {minutes:g} minutes of training steps each.",
        "",
        "| | configuration | parameters | steps | training minutes | all minutes | target tokens/s | BLEU | chrF |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, outcome in outcomes.items():
        run = outcome.run
        cells = [name, f"`{outcome.trial.config}`", f"{outcome.parameters:,}", f"{run.steps:,}"]
        cells += [f"{outcome.train_seconds / 60:.1f}", f"{run.minutes:.1f}"]
        cells += [f"{run.tokens_per_second:,.0f}", outcome.bleu(), f"{run.score('chrF', 'raw text')['value']:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "BLEU by the number of words of the source sentence:", ""]
    bins = by_length(outcomes)
    lines += ["| | " + " | ".join(bins) + " |", "|---|" + "---:|" * len(bins)]
    for name, outcome in outcomes.items():
        scores = {found["words"]: found["bleu"]["value"] for found in outcome.run.scores["by_length"]}
        cells = ["n/a" if scores.get(words) is None else f"{scores[words]:.1f}" for words in bins]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", "![BLEU by length, and over the time of training](ancestors.png)", ""]
    if outcome := next(iter(outcomes.values()), None):
        lines.append(f"BLEU: {outcome.run.score('BLEU', 'raw text')['signature']}")
    return "\n".join([*lines, NOTE.rstrip(), ""])


def by_length(outcomes: dict[str, Outcome]) -> list[str]:
    """The names of the bins, with the number of their sentences where it fits: all models have the same."""
    for outcome in outcomes.values():
        return [found["words"] for found in outcome.run.scores["by_length"]]
    return []


def draw(outcomes: dict[str, Outcome], path: pathlib.Path) -> None:
    """Draw BLEU by sentence length, and the BLEU of validations (greedy) over minutes of training steps."""
    figure, [lengths, times] = new_figure(1, 2, 11, 4.5)
    bins = by_length(outcomes)
    for (name, outcome), colour in zip(outcomes.items(), COLOURS, strict=False):
        found = outcome.run.scores["by_length"]
        values = [np.nan if one["bleu"]["value"] is None else one["bleu"]["value"] for one in found]
        lengths.plot(bins, values, "o-", color=colour, label=name)
        minutes, bleu = curve(RunFolder(outcome.run.name))
        times.plot(minutes, bleu, "o-", markersize=3, color=colour, label=name)
    lengths.set(xlabel="words of the source sentence", ylabel="BLEU", ylim=(0, None), title="By sentence length")
    times.set(xlabel="minutes of training steps", ylabel="BLEU, greedy", ylim=(0, None), title="Over training")
    lengths.legend(frameon=False, fontsize=8)
    save(figure, path)


def curve(folder: RunFolder) -> tuple[list[float], list[float]]:
    """The minutes of training steps before each validation, and its BLEU."""
    minutes, bleu, seconds = [], [], 0.0
    for record in map(json.loads, folder.metrics.read_text(encoding="utf-8").splitlines()):
        seconds += record.get("train/seconds_in_step", 0.0) + record.get("train/seconds_waiting", 0.0)
        if record.get("validation/bleu") is not None:
            minutes.append(seconds / 60)
            bleu.append(record["validation/bleu"])
    return minutes, bleu
