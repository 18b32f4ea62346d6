"""curves.png: loss, BLEU and learning rate over the steps of a run, from metrics.jsonl."""

import math
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..loop.metrics_file import parse_record
from ..scoring.figures import BLUE, GREY, ORANGE, literal, new_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

QUALITIES = {"validation/bracketing_f1": "F1", "validation/bleu": "BLEU", "validation/chrf": "chrF"}
MOST_POINTS = 2_000  # of a curve: more cannot be seen


def read_curves(path: pathlib.Path, last_step: float = math.inf) -> dict[str, np.ndarray]:
    """Read metrics.jsonl. Returns a dict from each name, such as "train/loss", to float64 (points, 2): step, value.

    last_step: of the run; records of later steps are left over from a process that was killed.
    Texts, damaged lines and values that are not finite are left out. The dict is empty if there is no such file.
    """
    points = {}
    if path.exists():
        with open(path, "rb") as file:
            for record in filter(None, map(parse_record, file)):
                if record["step"] > last_step:
                    continue
                for name, value in record.items():
                    if name not in ("step", "time") and isinstance(value, int | float):
                        points.setdefault(name, []).append((record["step"], value))
    return {name: np.array(pairs, float) for name, pairs in points.items()}


def plot_curves(curves: dict[str, np.ndarray], title: str, path: pathlib.Path) -> None:
    """Draw three panels over the steps: loss, quality and learning rate."""
    figure, (loss, bleu, rate) = new_figure(3, 1, 8, 8.5, sharex=True)
    draw_curve(loss, curves, "train/loss", "training, with dropout", BLUE)
    draw_curve(loss, curves, "validation/loss", "validation", ORANGE, "o-")
    loss.set(title=literal(title), ylabel="loss, nats per target token")
    if loss.get_lines():
        loss.legend(frameon=False)
    name, label = quality_of([curves])
    draw_curve(bleu, curves, name, label, ORANGE, "o-")
    bleu.set(ylabel=f"validation {label}")
    begin_at_zero(bleu)
    draw_curve(rate, curves, "train/learning_rate", "learning rate", GREY)
    rate.set(ylabel="learning rate", xlabel="step")
    begin_at_zero(rate)
    rate.ticklabel_format(axis="y", style="sci", scilimits=(-3, 3))
    save(figure, path)


def quality_of(curves: Sequence[dict[str, np.ndarray]]) -> tuple[str, str]:
    """Return name and label of the curve that shows the quality of runs: the first of QUALITIES that any run has.

    chrF comes last: it is shown if BLEU is undefined. If no run has any of them, it is BLEU.
    """
    names = (name for name in QUALITIES if any(name in of_run for of_run in curves))
    name = next(names, "validation/bleu")
    return name, QUALITIES[name]


def draw_curve(
    axis: "Axes", curves: dict[str, np.ndarray], name: str, label: str, colour: str, style: str = "-"
) -> None:
    """Draw one curve if it is there. A curve with many points gets the means of neighbouring ones."""
    if name in curves:
        steps, values = thinned(curves[name]).T
        axis.plot(steps, values, style, color=colour, label=label, linewidth=1.2, markersize=3)


def begin_at_zero(axis: "Axes") -> None:
    """Let the values of a panel start at 0, with room for the whole mark of the highest one."""
    highest = axis.dataLim.y1 if axis.get_lines() else 0.0
    axis.set_ylim(0, 1.05 * highest if highest > 0 else None)


def thinned(points: np.ndarray, most: int | None = None) -> np.ndarray:
    """Return the points (n, 2); of more than `most`, the means of groups of neighbours."""
    size = -(-len(points) // (most or MOST_POINTS))
    whole = len(points) // size * size
    groups = points[:whole].reshape(-1, size, 2).mean(axis=1)
    return groups if whole == len(points) else np.vstack([groups, points[whole:].mean(axis=0)])
