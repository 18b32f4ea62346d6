"""Variants of the Transformer as a table and a picture: means over seeds, and how far seeds are apart."""

import itertools
import pathlib
import tomllib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.trials.outcome import Outcome, commits_sentence, machines, mark
from train.config.run import RunConfig
from train.scoring.figures import BLUE, GREY, ORANGE, new_figure, save

LENGTHS = (1, 2, 4)  # sentences of the test set that are translated as one
WITH = "_with_"  # between a variant and the optimizer of its row, if that is not the configuration's
PAPER = "paper"  # the row whose last loss the others are compared by
# colours of the rows that have none of their own: neither grey, blue nor orange
OTHERS = (*(f"tab:{name}" for name in "green red purple brown pink olive cyan".split()), "gold", "black", "navy")
HEAD = (
    "| | d_ff | parameters | rate | seeds | validation loss | BLEU of validation | BLEU of the test set "
    "| twice as long | four times | ms per step | updates | tokens |"
)
NOTE = """
All rows of a table have the same pairs, tokenizer, batches, updates, optimizer and schedule, and as many parameters:
d_ff makes up for what a variant adds or saves. Every row but paper and pre changes one thing of pre, and modern three.
With Muon the updates of matrices are orthogonal, and the rate falls as half a cosine; its rates are parts of the peak
rate of the configuration, too. A row has the learning rate whose last validation loss is lowest, of those that its
first seed was trained with. Nothing was chosen by the test set. A cell is the mean over seeds, in brackets the lowest
and the highest; of BLEU, ± is half of the 95 per cent interval of 1,000 resamples of sentences, the mean over seeds.
Loss is in nats per target token, without label smoothing. Twice and four times as long are texts of two and four
sentences of the test set, translated as one; no training sentence is so long but by chance. Milliseconds are the
median of a step; compare them on one machine only, and beside the same other work. Updates and tokens are those after
which the mean loss of a row is the one that paper ends with, between validations by a straight line.
"""


class Training(NamedTuple):
    """A training that has ended."""

    name: str  # of its row: the variant, and behind WITH an optimizer
    rate: float  # a part of the configuration's learning rate
    seed: int
    outcome: Outcome

    @property
    def variant(self) -> str:
        return self.name.partition(WITH)[0]

    @property
    def optimizer(self) -> str:
        """ "" if it is the configuration's."""
        return self.name.partition(WITH)[2]

    @property
    def losses(self) -> np.ndarray:
        """(validations, 2): the update and the loss."""
        return np.array(self.outcome.measures["losses"])

    @property
    def loss(self) -> float:
        """The last one."""
        return float(self.losses[-1, 1])

    def bleu(self, together: int = 1) -> dict[str, Any]:
        """BLEU of the test set, so many sentences translated as one."""
        return self.outcome.measures["bleu"][str(together)]


def mean_losses(own: Sequence[Training]) -> np.ndarray:
    """The mean over seeds: (validations, 2), the update and the loss."""
    return np.mean([one.losses for one in own], axis=0)


def updates_to(loss: float, losses: np.ndarray) -> float:
    """The update after which a validation loss is no higher, on a straight line between two; infinite if it never is.

    Shapes: losses (validations, 2), the update and the loss.
    """
    steps, values = losses.T
    reached = np.flatnonzero(values <= loss)
    if not len(reached):
        return np.inf
    ends = slice(max(reached[0] - 1, 0), reached[0] + 1)
    return float(np.interp(-loss, -values[ends], steps[ends]))


def best_rate(trainings: Sequence[Training], name: str) -> float:
    """The learning rate with the lowest validation loss of a variant's first seed, of those that have ended."""
    return min((one for one in trainings if (one.name, one.seed) == (name, 1)), key=lambda one: one.loss).rate


def chosen(trainings: Sequence[Training]) -> dict[str, list[Training]]:
    """By variant, the trainings of its best rate."""
    rows: dict[str, list[Training]] = {one.name: [] for one in trainings}
    for one in trainings:
        if one.rate == best_rate(trainings, one.name):
            rows[one.name].append(one)
    return rows


def outcomes_of(trainings: Sequence[Training]) -> dict[str, Outcome]:
    """All outcomes, each by what tells its training from the others."""
    return {f"{one.name}, rate {one.rate:g}, seed {one.seed}": one.outcome for one in trainings}


def table(base: RunConfig, trainings: Sequence[Training], command: str) -> str:
    """Return variants.md. Variants of which nothing has ended are left out."""
    rows, outcomes = chosen(trainings), outcomes_of(trainings)
    lines = [
        "# Variants of the Transformer at equal size",
        "",
        f"`{command}` on {machines(outcomes.values())}: {trainings[0].outcome.steps:,} updates of "
        f"{base.training.tokens_per_batch:,} target positions; {len(trainings)} trainings.",
    ]
    target = float(mean_losses(rows[PAPER])[-1, 1]) if PAPER in rows else np.nan
    for optimizer, own in by_optimizer(trainings).items():
        lines += ["", f"## With {optimizer.capitalize()}"] if optimizer else []
        lines += ["", HEAD, "|---|" + "---:|" * (HEAD.count("|") - 2)]
        lines += [table_row(each, target, [*outcomes.values()]) for each in chosen(own).values()]
        lines += ["", f"The loss of the last two columns is {target:.3f}.", "", *rates(own)]
    lines += ["", f"BLEU: {trainings[0].bleu()['signature']}", "", empty(rows)]
    lines += ["", sentence] if (sentence := commits_sentence(outcomes)) else []
    return "\n".join([*lines, "", "![BLEU, loss and length](variants.png)", NOTE.rstrip(), ""])


def by_optimizer(trainings: Sequence[Training]) -> dict[str, list[Training]]:
    """The trainings with each optimizer; those with the configuration's, which is "", come first."""
    found = sorted({one.optimizer for one in trainings})
    return {optimizer: [one for one in trainings if one.optimizer == optimizer] for optimizer in found}


def table_row(own: Sequence[Training], target: float, outcomes: Sequence[Outcome]) -> str:
    """One line of the table."""
    config = tomllib.loads(own[0].outcome.config)
    seconds = [one.outcome.measures["seconds_per_step"] for one in own]
    updates = updates_to(target, mean_losses(own))
    tokens = updates * np.mean([one.outcome.target_tokens / one.outcome.steps for one in own])
    cells = [
        own[0].variant,
        f"{config['model']['d_ff']:,}",
        f"{own[0].outcome.parameters:,}",
        f"{own[0].rate:g}",
        f"{len(own)}",
        spread([one.loss for one in own], 3),
        with_interval([one.outcome.score("BLEU") for one in own]),
        *(with_interval([one.bleu(together) for one in own]) for together in LENGTHS),
        f"{1000 * np.mean(seconds):.0f}{mark(own[0].outcome, outcomes)}",
        *("never" if np.isinf(count) else f"{count:,.0f}" for count in (updates, tokens)),
    ]
    return "| " + " | ".join(cells) + " |"


def spread(values: Sequence[float], digits: int) -> str:
    """The mean, and in brackets the lowest and the highest of several."""
    text = f"{np.mean(values):.{digits}f}"
    return text if len(values) == 1 else f"{text} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def with_interval(scores: Sequence[dict[str, Any]]) -> str:
    """BLEU over the seeds of a row with half of the interval: "31.20 ± 1.40 (30.90 to 31.60)"."""
    mean, brackets, rest = spread([score["value"] or 0.0 for score in scores], 2).partition(" (")
    intervals = [score["interval"] for score in scores if score["interval"]]
    half = f" ± {np.mean([high - low for low, high in intervals]) / 2:.2f}" if intervals else ""
    return mean + half + brackets + rest


def rates(trainings: Sequence[Training]) -> list[str]:
    """The lines of a table of the last validation loss of the first seed by learning rate."""
    first = {(one.variant, one.rate): one.loss for one in trainings if one.seed == 1}
    tried = sorted({rate for _, rate in first}, reverse=True)
    lines = ["Validation loss of the first seed by learning rate, as a part of the configuration's:", ""]
    lines += ["| | " + " | ".join(f"{rate:g}" for rate in tried) + " |", "|---|" + "---:|" * len(tried)]
    for name in dict.fromkeys(name for name, _ in first):
        losses = (first.get((name, rate)) for rate in tried)
        lines.append(f"| {name} | " + " | ".join("" if loss is None else f"{loss:.3f}" for loss in losses) + " |")
    return lines


def empty(rows: dict[str, list[Training]]) -> str:
    """How many translations of the test set are empty, which costs BLEU more than any variant gains."""
    counts = {name: sum(one.bleu()["empty"] for one in own) for name, own in rows.items()}
    return "Empty translations of the test set, all seeds together: " + ", ".join(
        f"{name} {count}" for name, count in counts.items()
    )


def draw(trainings: Sequence[Training], path: pathlib.Path) -> None:
    """Draw BLEU of each seed, the validation loss over the updates, BLEU by length, and the last loss by optimizer."""
    rows = chosen([one for one in trainings if not one.optimizer])
    figure, [bleu, losses, lengths, optimizers] = new_figure(1, 4, 20, 5)
    colours, others = {PAPER: GREY, "pre": BLUE, "modern": ORANGE}, itertools.cycle(OTHERS)
    for place, (name, own) in enumerate(rows.items()):
        colour = colours.get(name) or next(others)
        score = [one.bleu()["value"] for one in own]
        half = np.mean([np.ptp(one.bleu()["interval"] or [0, 0]) for one in own]) / 2
        bleu.errorbar(np.mean(score), place, xerr=half, fmt="none", color="#bbbbbb")
        bleu.plot(score, [place] * len(own), "o", markersize=4, color=colour)
        losses.plot(*mean_losses(own).T, color=colour, label=name)
        of_length = [np.mean([one.bleu(together)["value"] or 0.0 for one in own]) for together in LENGTHS]
        lengths.plot(list(map(str, LENGTHS)), of_length, "o-", markersize=3, color=colour, label=name)
    bleu.set_yticks(range(len(rows)), [*rows])
    bleu.invert_yaxis()
    bleu.set(xlabel="BLEU of the test set; a point is a seed, a line the interval", title="At equal size and updates")
    losses.set(xlabel="updates", ylabel="validation loss, nats per token", title="Over training")
    lengths.set(xlabel="sentences translated as one", ylabel="BLEU", ylim=(0, None), title="Longer than in training")
    losses.legend(frameon=False, fontsize=8)
    for (optimizer, series), colour in zip(by_optimizer(trainings).items(), (BLUE, ORANGE), strict=False):
        own = chosen(series).values()
        places = [[*rows].index(each[0].variant) for each in own]
        last = [np.mean([one.loss for one in each]) for each in own]
        optimizers.plot(last, places, "o", color=colour, label=optimizer.capitalize() or "Adam")
    optimizers.set_yticks(range(len(rows)), [*rows])
    optimizers.invert_yaxis()
    optimizers.set(xlabel="last validation loss, nats per token", title="By optimizer")
    optimizers.legend(frameon=False, fontsize=8)
    save(figure, path)
