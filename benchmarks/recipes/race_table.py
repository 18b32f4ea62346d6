"""The results of a race: race.md, and race.png with BLEU against the minutes of training."""

import pathlib
from typing import NamedTuple

from benchmarks.recipes.racing.record import first_mark_with
from keras_transformer.ground.machine import processor_and_cores
from train.scoring.figures import BLUE, ORANGE, new_figure, save

MARK_SECONDS = 300.0  # between two scores of a contestant

NOTE = """
Both train on the 29,000 pairs of Multi30k with the same SentencePiece model, the same shape (256 wide, 3+3 layers, 4
heads, 512 in the feed-forward layers, norms after the sublayers, one embedding matrix), the same dropout, label
smoothing, Adam and learning rate (a warm-up of 1,000 steps, factor 0.8). Each has all cores in its turns and is stopped
in between, so that both meet the same load of the machine. A contestant's clock counts the time in which it runs:
start, reading of the text, compilation and checkpoints included. This project does not validate in the race; JoeyNMT
writes its checkpoints when it validates, so its validations are on its clock: 8 sentences each, translated greedily.

The score at a mark is that of the newest checkpoint by then. The table has how often each writes one.

JoeyNMT has batches of {peer_batch:,} tokens (--peer-batch), padding included, without length buckets (it has none);
in a trial on two cores of an AMD EPYC it trained on 1,330 target tokens/s in batches of 2,048, and on about 1,000 in
batches of 4,096. This project packs rows, {our_batch:,} tokens a batch. The epsilon of Adam is 1e-9 here and 1e-8
there, where no key sets it.

JoeyNMT applies its dropout to attention weights and inside the feed-forward network as well, as it is shipped. Rate and
schedule of both are those of this project's configuration, and were not tuned for either: per token JoeyNMT may learn
more with others. What does not depend on them is in the rows of target tokens: the same number of tokens as JoeyNMT has
read at the end, this project has read after the share of the time that the two rates give.

Memory is the largest sum over all processes of a contestant that was seen, every five seconds of its turns and at their
ends; pages that they share count once (Pss).

Each checkpoint translates val with the program's own beam search, with the same beam (5) and the same length penalty,
((5 + length) / 6)^1.0; one sacreBLEU scores both. No checkpoint is averaged or chosen.
"""


class Race(NamedTuple):
    """The results of a contestant."""

    label: str
    scores: dict[float, float]  # BLEU on val by seconds of training
    signature: str
    rate: float  # target tokens per second of training, EOS included
    seconds_between: float  # two checkpoints, in the mean
    memory_bytes: int  # of all its processes, at most


def table(race: dict[str, Race], command: str, our_batch: int, peer_batch: int) -> str:
    """Return race.md. our_batch, peer_batch: tokens of a batch."""
    marks = sorted({mark for contestant in race.values() for mark in contestant.scores})
    lines = ["# The race", "", f"`{command.strip()}` on {processor_and_cores()}.", ""]
    lines += [
        f"| minutes | {' | '.join(contestant.label for contestant in race.values())} |",
        "|---:|" + "---:|" * len(race),
    ]
    for mark in marks:
        cells = [f"{contestant.scores[mark]:.2f}" if mark in contestant.scores else "" for contestant in race.values()]
        lines.append(f"| {mark / 60:g} | " + " | ".join(cells) + " |")
    lines.append("| target tokens/s | " + " | ".join(f"{contestant.rate:,.0f}" for contestant in race.values()) + " |")
    intervals = (f"{contestant.seconds_between:.0f}" for contestant in race.values())
    lines.append("| seconds between checkpoints | " + " | ".join(intervals) + " |")
    lines.append(
        "| peak memory | "
        + " | ".join(f"{contestant.memory_bytes / 2**20:,.0f} MiB" for contestant in race.values())
        + " |"
    )
    lines += ["", *conclusion(race), f"BLEU on val: {next(iter(race.values())).signature}"]
    lines.append(NOTE.format(our_batch=our_batch, peer_batch=peer_batch))
    return "\n".join(lines)


def conclusion(race: dict[str, Race]) -> list[str]:
    """Return when this project reached the last score of the other, as lines of Markdown."""
    ours, theirs = race["ours"], race["joeynmt"]
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
