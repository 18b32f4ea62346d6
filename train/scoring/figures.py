"""Pictures with matplotlib: a figure without a window, its colours, and its file."""

import logging
import pathlib
from typing import TYPE_CHECKING

from keras_transformer.ground.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#767676"  # told apart by everybody (Okabe and Ito 2008)


def new_figure(rows: int, columns: int, width: float, height: float, **options):
    """Return a matplotlib Figure of `width` times `height` inches and its axes, as `Figure.subplots` does."""
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # it logs each font that it finds
    from matplotlib.figure import Figure  # here, because it takes a third of a second

    figure = Figure((width, height), layout="constrained")
    axes = figure.subplots(rows, columns, **options)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color="#dddddd", linewidth=0.6)
        axis.set_axisbelow(True)
    return figure, axes


def literal(text: str) -> str:
    """Return a text, such as the name of a folder, as matplotlib has to get it so that its $ begin no formula."""
    return text.replace("$", r"\$")


def save(figure: "Figure", path: pathlib.Path) -> None:
    """Write the figure in the format of the file's ending: .png, .svg or .pdf."""
    kind = path.suffix.lower().removeprefix(".")
    write_atomically(path, lambda file: figure.savefig(file, format=kind, dpi=150))
