"""The picture of `keras-transformer evaluate --plot`: scores with their intervals, and where they are won and lost."""

import pathlib
from typing import TYPE_CHECKING

from .figures import BLUE, GREEN, GREY, ORANGE, literal, new_figure, save
from .scorecard import Scorecard

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 0.38  # of a bar beside another; bars stand 1 apart


def plot_scorecard(card: Scorecard, name: str, path: pathlib.Path) -> None:
    """Draw four panels: scores, words by frequency, BLEU and chrF by length. `name` is what the run is called."""
    figure, ((scores, frequencies), (bleu, chrf)) = new_figure(2, 2, 11, 7.5)
    other = card.comparison
    draw_scores(scores, card)
    mine, theirs = card.breakdown, other.breakdown if other else None
    draw_bars(
        frequencies,
        [f"{short(frequency.occurrences)}\n{frequency.words:,}" for frequency in mine.frequencies],
        [frequency.f1 for frequency in mine.frequencies],
        [frequency.f1 for frequency in theirs.frequencies] if theirs else None,
    )
    frequencies.set(
        title="Words of the references: F1 by frequency",
        xlabel="occurrences in the training text; below, words",
        ylabel="F1, per cent",
    )
    for axis, field in ((bleu, "bleu"), (chrf, "chrf")):
        own, others = (
            [getattr(length, field) for length in bins] for bins in (mine.lengths, theirs.lengths if theirs else ())
        )
        draw_bars(
            axis,
            [f"{short(length.name)}\n{length.sentences:,}" for length in mine.lengths],
            [score.value for score in own],
            [score.value for score in others] if theirs else None,
            [score.undefined for score in own],
        )
        why = next((f"\nn/a: {score.undefined}" for score in own if score.undefined), "")
        axis.set(
            title=f"{own[0].name} of {own[0].form}, by length{why}",
            xlabel="words of the source sentence; below, sentences",
            ylabel=f"{own[0].name}, per cent",
        )
    title = f"{name}, {card.scores.sentences:,} sentences"
    figure.suptitle(literal(f"{title}, against {other.name}" if other else title))
    if other:
        labels = [literal(name), literal(other.name)]
        figure.legend(frequencies.containers[:2], labels, loc="outside lower center", ncols=2, frameon=False)
    save(figure, path)


def draw_scores(axis: "Axes", card: Scorecard) -> None:
    """Every score as a point with its 95 per cent confidence interval, from the top down; the other's scores too."""
    scores = card.scores.measured
    labels = []
    others = {(other.name, other.form): other for other in card.comparison.differences} if card.comparison else {}
    for row, score in enumerate(scores):
        labels.append(f"{score.name} {score}\n{score.undefined or score.form}")
        if score.undefined:
            continue
        axis.errorbar(score.value, row, xerr=score.margin or 0, fmt="o", color=BLUE, capsize=4)
        if against := others.get((score.name, score.form)):
            axis.plot(against.theirs, row, "D", color=ORANGE)
            labels[-1] += f"\n{against.ours - against.theirs:+.2f} (p {against.verdict})"
    axis.set_yticks(range(len(labels)), labels)
    axis.set_ylim(len(labels) - 0.5, -0.5)
    axis.grid(axis="x", color="#dddddd", linewidth=0.6)
    axis.set(title="Scores with 95 per cent confidence intervals", xlabel="per cent")


def short(label: str) -> str:
    """Return the name of a bin as it fits under its bar: "6-10", "1,000+"."""
    return label.replace("up to ", "0-").replace(" to ", "-").replace(" and more", "+")


def draw_bars(
    axis: "Axes", labels: list[str], values: list[float], others: list[float] | None, undefined: list[str] | None = None
) -> None:
    """Bars with their values above them, in pairs if there are others. An undefined value is "n/a"."""
    places = range(len(values))
    reasons = undefined or [""] * len(values)
    sets = [(values, 0.0, GREEN if others is None else BLUE)]
    if others is not None:
        sets = [(values, -WIDTH / 2, BLUE), (others, WIDTH / 2, ORANGE)]
    for heights, shift, colour in sets:
        width = WIDTH if others is not None else 2 * WIDTH
        bars = axis.bar([place + shift for place in places], heights, width, color=colour)
        texts = ["n/a" if reason else f"{value:.0f}" for value, reason in zip(heights, reasons, strict=True)]
        axis.bar_label(bars, texts, fontsize=7, color=GREY)
    if not any(any(heights) for heights, _, _ in sets):
        axis.set_ylim(0, 100)  # it would be a thousandth around 0
    axis.set_xticks(list(places), labels, fontsize=8)
