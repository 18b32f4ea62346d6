"""The plots of `benchmarks.paper.table1`: FLOPs, seconds and path lengths against n, on logarithmic axes."""

import pathlib
from typing import Any

from benchmarks.paper.layer_kinds.claims import MEASURED, STACKED
from benchmarks.paper.layer_kinds.report import cells_of, named

COLOURS = {  # those of Okabe and Ito, which readers with any colour vision tell apart
    "self_attention": "#0072B2",
    "recurrent": "#D55E00",
    "convolutional": "#009E73",
    "restricted": "#CC79A7",
    "masked": "#56B4E9",
    "dilated": "#E69F00",
}


def draw(numbers: dict[str, Any], path: pathlib.Path) -> None:
    """Write the picture of what table1.json holds."""
    from matplotlib.figure import Figure

    widths = numbers["widths"]
    figure = Figure((5 * (len(widths) + 1), 8), layout="constrained")
    axes = figure.subplots(2, len(widths) + 1, squeeze=False)
    for column, d in enumerate(widths):
        draw_cells(axes[0][column], numbers, d, "flops_forward", f"FLOPs forward, d = {d}")
        draw_cells(axes[1][column], numbers, d, "seconds_training", f"seconds forward and backward, d = {d}")
    draw_paths(axes[0][-1], numbers)
    draw_cells(axes[1][-1], numbers, widths[-1], "sequential", f"sequential operations, d = {widths[-1]}")
    for axis in axes.flat:
        axis.set(xscale="log", yscale="log", xlabel="n, words of a sentence")
        axis.set_xticks(numbers["lengths"], [str(n) for n in numbers["lengths"]], rotation=45, minor=False)
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[1][0].legend(fontsize=8)
    axes[0][-1].legend(fontsize=8)
    figure.savefig(path, dpi=110)


def draw_cells(axis, numbers: dict[str, Any], d: int, key: str, title: str) -> None:
    for kind, claim in MEASURED.items():
        cells = cells_of(numbers, kind, d)
        label = named(claim, numbers["sizes"])
        x, y = [cell["n"] for cell in cells], [cell[key] for cell in cells]
        axis.plot(x, y, marker="o", markersize=3, color=COLOURS[kind], label=label)
    axis.set_title(title)


def draw_paths(axis, numbers: dict[str, Any]) -> None:
    for kind, claim in STACKED.items():
        paths = [each for each in numbers["paths"] if each["kind"] == kind]
        x, y = [each["n"] for each in paths], [each["length"] for each in paths]
        axis.plot(x, y, marker="o", markersize=3, color=COLOURS[kind], label=named(claim, numbers["sizes"]))
    axis.set_title("maximum path length")
