"""The results of a race: race.md, and race.png with BLEU against the minutes of training."""

import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from benchmarks.recipes.racing.racer import Task
from benchmarks.recipes.racing.record import first_mark_with
from keras_transformer.ground.machine import processor_and_cores
from train.scoring.figures import BLUE, ORANGE, new_figure, save

NOTE = """
Both train on the {pairs:,} pairs of [{config}](../../{config}) with the same SentencePiece model, the same shape
({d_model} wide, {encoder_layers}+{decoder_layers} layers, {num_heads} heads, {d_ff} in the feed-forward layers,
norm = "{norm}", one embedding matrix), the same dropout, label smoothing, Adam and learning rate (a warm-up of
{warmup_steps:,} steps to {peak_rate:.5f}, no cooldown); {tokens_per_batch:,} target tokens a batch here. Rate and
schedule are those of this project's configuration, and were not tuned for either. The training text is not changed from
epoch to epoch.

Each has all cores in its turns and is stopped in between, so that both meet the same load of the machine. A
contestant's clock counts the time in which it runs: start, reading of the text, compilation and checkpoints included.
The score at a mark is that of the newest checkpoint by then. The table has how often each writes one.

{notes}

The same number of tokens as the slower one has read at the end, the other has read after the share of the time that
the two rates give, whatever the schedule.

Memory is the largest sum over all processes of a contestant that was seen, every five seconds of its turns and at their
ends; pages that they share count once (Pss).

Each checkpoint translates the validation text with the program's own beam search, with the same beam ({beam_size}) and
the same length normalization; one sacreBLEU scores both. No checkpoint is averaged or chosen.
"""


class Race(NamedTuple):
    """The results of a contestant."""

    label: str
    scores: dict[float, float]  # BLEU on val by seconds of training
    scores_by_step: dict[int, float]
    signature: str
    rate: float  # target tokens per second of training, EOS included
    seconds_between: float  # two checkpoints, in the mean
    memory_bytes: int  # of all its processes, at most
    note: str


def table(race: dict[str, Race], command: str, task: Task) -> str:
    """Return race.md."""
    both = list(race.values())
    lines = ["# The race", "", f"`{command.strip()}` on {processor_and_cores()}.", ""]
    lines += rows_by("minutes", [{mark / 60: score for mark, score in each.scores.items()} for each in both], both)
    lines += [
        row("target tokens/s", (f"{each.rate:,.0f}" for each in both)),
        row("seconds between checkpoints", (f"{each.seconds_between:.0f}" for each in both)),
        row("peak memory", (f"{each.memory_bytes / 2**20:,.0f} MiB" for each in both)),
        "",
    ]
    if both[0].scores_by_step.keys() & both[1].scores_by_step.keys():
        lines += [*rows_by("updates", [each.scores_by_step for each in both], both), ""]
    lines += [*conclusion(race), f"BLEU on val: {both[0].signature}"]
    notes = "\n\n".join(each.note for each in both)
    config = task.config.relative_to(pathlib.Path.cwd()) if task.config.is_absolute() else task.config
    pairs = len(task.lines("train", task.languages[0]))
    lines.append(
        NOTE.format(**{**task._asdict(), "config": config}, peak_rate=task.peak_rate, pairs=pairs, notes=notes)
    )
    return "\n".join(lines)


def rows_by(name: str, scores: Sequence[Mapping[float, float]], race: Sequence[Race]) -> list[str]:
    """A table of Markdown: a row per mark, a column per contestant."""
    marks = sorted(set().union(*scores))
    cells = [[f"{of_one[mark]:.2f}" if mark in of_one else "" for of_one in scores] for mark in marks]
    head = [row(name, (each.label for each in race)), "|---:|" + "---:|" * len(race)]
    return head + [row(f"{mark:,g}", columns) for mark, columns in zip(marks, cells, strict=True)]


def row(name: str, cells: Iterable[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def conclusion(race: dict[str, Race]) -> list[str]:
    """Return when this project reached the last score of the other, as lines of Markdown."""
    ours, theirs = race.values()
    if not theirs.scores or not ours.scores:
        return []
    last = max(theirs.scores)
    goal, mark = theirs.scores[last], first_mark_with(ours.scores, theirs.scores[last])
    reached = f"after {mark / 60:g} minutes" if mark else "not yet"
    return [f"{theirs.label} has {goal:.2f} BLEU after {last / 60:g} minutes; {ours.label} had that {reached}.", ""]


def draw(race: dict[str, Race], path: pathlib.Path) -> None:
    """Draw BLEU against minutes."""
    figure, [[axis]] = new_figure(1, 1, 7, 4.5, squeeze=False)
    for contestant, colour in zip(race.values(), (BLUE, ORANGE), strict=True):
        minutes = [mark / 60 for mark in contestant.scores]
        axis.plot(minutes, list(contestant.scores.values()), "o-", color=colour, label=contestant.label)
    axis.set(xlabel="minutes of training on the same cores", ylabel="BLEU on val", ylim=(0, None), xlim=(0, None))
    axis.legend(frameon=False)
    save(figure, path)
