"""The Transformer beside its ancestors, as a table and a picture."""

import pathlib
import tomllib

import numpy as np

from benchmarks.trials.outcome import Outcome, commits_sentence, empty_sentence, machines, mark
from train.scoring.figures import BLUE, GREEN, GREY, ORANGE, new_figure, save

COLOURS = (BLUE, ORANGE, GREEN, GREY, "#CC79A7", "#56B4E9")
NOTE = """
Every model trains on the same pairs with the same tokenizer, loss and batches, from its committed configuration, for as
many steps as it makes in that time on that machine (60 steps of each are measured first), and has about the same number
of parameters. Schedule, learning rate and dropout are what such models usually have, and were tuned for none of them:
the recurrent ones have more dropout. The one without attention differs in more than that from the others: it has LSTM
cells, and an encoder of one direction that reads the sentence backwards, as in its paper. Times are of the machine that
trained the row, which a letter names if there are several. Scores are of the validation set, which also chose between
the last and the averaged weights; the intervals are of 1,000 resamples. One seed each. Target tokens/s are the tokens
of all steps over that time: as fast as each model trains on that machine with nothing beside it. Minutes are those of
the training itself, which may have had other work beside it, on one row more than on another; training minutes are of
the steps, compilation included, and all minutes have validations and checkpoints in them too. The picture goes by equal
time.
"""


def table(
    outcomes: dict[str, Outcome], configs: dict[str, pathlib.Path], minutes: float, timed_on: str, command: str
) -> str:
    """Return ancestors.md; `outcomes` and `configs` by the name of the model. All train for `minutes` of `timed_on`."""
    lines = [
        "# What attention replaced",
        "",
        f"`{command}` on {machines(outcomes.values())}: as many training steps each as take "
        f"{minutes:g} minutes of {timed_on}.",
        "",
        "| | configuration | parameters | dropout | steps | target tokens/s | training minutes | all minutes | BLEU "
        "| chrF |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, outcome in outcomes.items():
        machine = mark(outcome, outcomes.values())
        dropout = tomllib.loads(outcome.config)["training"].get("dropout", "")
        cells = [name, f"`{configs[name]}`", f"{outcome.parameters:,}", f"{dropout}", f"{outcome.steps:,}"]
        cells += [f"{outcome.target_tokens / (60 * minutes):,.0f}"]
        cells += [f"{outcome.train_seconds / 60:.1f}{machine}", f"{outcome.minutes:.1f}"]
        cells += [outcome.bleu(), f"{outcome.score('chrF')['value']:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "BLEU by the number of words of the source sentence:", ""]
    bins = by_length(outcomes)
    lines += ["| | " + " | ".join(bins) + " |", "|---|" + "---:|" * len(bins)]
    lines += ["| sentences | " + " | ".join(f"{count:,}" for count in bins.values()) + " |"] if bins else []
    for name, outcome in outcomes.items():
        scores = {length["words"]: length["bleu"]["value"] for length in outcome.scores["by_length"]}
        cells = ["n/a" if scores.get(words) is None else f"{scores[words]:.1f}" for words in bins]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", "![BLEU by length, and over the time of training](ancestors.png)", ""]
    if outcome := next(iter(outcomes.values()), None):
        lines.append(f"BLEU: {outcome.score('BLEU')['signature']}")
    for sentence in filter(None, (empty_sentence(outcomes), commits_sentence(outcomes))):
        lines += ["", sentence]
    return "\n".join([*lines, NOTE.rstrip(), ""])


def by_length(outcomes: dict[str, Outcome]) -> dict[str, int]:
    """The number of sentences of each bin: all models have the same."""
    for outcome in outcomes.values():
        return {length["words"]: length["sentences"] for length in outcome.scores["by_length"]}
    return {}


def over_equal_time(outcome: Outcome, minutes: float) -> tuple[list[float], list[float]]:
    """The minutes at which each validation comes if all steps take so many, and its BLEU: other work counts nothing."""
    every = tomllib.loads(outcome.config)["training"]["validate_every"]
    steps = [min(every * number, outcome.steps) for number in range(1, len(outcome.curve) + 1)]
    return [minutes * step / outcome.steps for step in steps], [bleu for _, bleu in outcome.curve]


def draw(outcomes: dict[str, Outcome], minutes: float, path: pathlib.Path) -> None:
    """Draw BLEU by sentence length, and the BLEU of validations (greedy) over the minutes that all train for."""
    figure, [lengths, times] = new_figure(1, 2, 11, 4.5)
    bins = [f"{words}\n({count:,})" for words, count in by_length(outcomes).items()]
    for (name, outcome), colour in zip(outcomes.items(), COLOURS, strict=False):
        scores = [length["bleu"]["value"] for length in outcome.scores["by_length"]]
        values = [np.nan if score is None else score for score in scores]
        lengths.plot(bins, values, "o-", color=colour, label=name)
        times.plot(*over_equal_time(outcome, minutes), "o-", markersize=3, color=colour, label=name)
    lengths.set(
        xlabel="words of the source sentence (sentences)", ylabel="BLEU", ylim=(0, None), title="By sentence length"
    )
    times.set(xlabel="minutes of training", ylabel="BLEU, greedy", xlim=(0, None), ylim=(0, None))
    times.set_title("Over training")
    lengths.legend(frameon=False, fontsize=8)
    save(figure, path)
