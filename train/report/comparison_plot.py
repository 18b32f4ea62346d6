"""The picture of `keras-transformer compare --plot`: the curves of several runs over each other."""

import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..scoring.figures import BLUE, GREEN, ORANGE, literal, new_figure, save
from .comparison import Run
from .curves import begin_at_zero, quality_of, thinned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#56B4E9", "#E69F00", "#000000")  # Okabe and Ito 2008
STYLES = ("-", "--", ":")  # of runs that share a colour
MOST_POINTS = 150  # of a training curve: its noise would hide the others
START = 0.05  # share of the training curves that may lie above the picture: their first steps


def plot_runs(runs: Sequence[Run], path: pathlib.Path) -> None:
    """Draw three panels over the steps: training loss, validation loss, and quality, as `quality_of` finds it."""
    figure, axes = new_figure(3, 1, 9, 11, sharex=True)
    quality, label = quality_of([run.curves for run in runs])
    names = ("train/loss", "validation/loss", quality)
    for axis, name in zip(axes, names, strict=True):
        for number, run in enumerate(runs):
            draw_run(axis, run, name, COLOURS[number % len(COLOURS)], STYLES[number // len(COLOURS) % len(STYLES)])
    for axis, kind in zip(axes, ("training loss, with dropout", "validation loss", f"validation {label}"), strict=True):
        axis.set_ylabel(kind)
    limit_start(axes[0], runs)
    axes[2].set_xlabel("step")
    begin_at_zero(axes[2])
    figure.legend(handles=axes[0].get_lines(), loc="outside upper center", ncols=min(3, len(runs)), frameon=False)
    save(figure, path)


def draw_run(axis: "Axes", run: Run, name: str, colour: str, style: str) -> None:
    """Draw one curve of a run, an empty one if it has none."""
    points = run.curves.get(name, np.empty((0, 2)))
    if name.startswith("train/") and len(points):
        points = thinned(points, MOST_POINTS)
    marker = "" if name.startswith("train/") else "o"
    axis.plot(*points.T, style, marker=marker, color=colour, label=literal(run.name), linewidth=1.3, markersize=3.5)


def limit_start(axis: "Axes", runs: Sequence[Run]) -> None:
    """Cut off the first steps, whose loss is far above all others."""
    losses = [thinned(run.curves["train/loss"], MOST_POINTS)[:, 1] for run in runs if "train/loss" in run.curves]
    if losses:
        everything = np.concatenate(losses)
        low, high = everything.min(), np.quantile(everything, 1 - START)
        if high > low:
            axis.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
