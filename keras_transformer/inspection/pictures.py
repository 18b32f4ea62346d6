"""Pictures of attention: every head of every layer of one sentence pair, as a summary for TensorBoard.

Text is matplotlib's, drawn once and copied to every panel; cells are coloured as an array. A picture takes 0.1 s.
"""

import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.plugins.image.metadata import create_summary_metadata

from keras_transformer.inspection.attention import PairAttention

TITLES = {  # by kind
    "memory": "Encoder-decoder attention: each target piece, as it is written (rows), to the source (columns)",
    "encoder": "Encoder self-attention: each source piece (rows) to the source (columns)",
    "decoder": "Decoder self-attention: each target piece, as it is written (rows), to those before it (columns)",
}
CELL = 16  # pixels: room for a line of text
FONT = 11  # pixels
WIDEST = 14  # characters of a label; longer pieces are cut
CHARACTER = 0.62 * FONT / CELL  # mean width of a character, in cells
LEAST = 42  # cells that a picture is wide, for its title
SHADES = (0, 0.05, 0.2, 0.5, 1)  # with a number beside the colour bar
BAR = 14  # cells of the colour bar
GREYS = 128  # of text; the other half of a palette's 256 colours are those of weights
FALLBACKS = ("Noto Sans CJK SC", "Noto Sans CJK JP", "Droid Sans Fallback", "WenQuanYi Zen Hei", "Arial Unicode MS")


class Picture(NamedTuple):
    """A picture as a PNG file, and its size in pixels."""

    png: bytes
    width: int
    height: int


class Grid(NamedTuple):
    """Where things lie, in cells: one panel per layer (down) and head (across), with labels on the left and above."""

    layers: int
    heads: int
    queries: int
    keys: int
    left: int  # room for the labels of rows, left of the first head
    top: int  # room for the labels of columns and the number of the head, above each panel
    gap: int = 2  # between panels, and around all of them

    @classmethod
    def of(cls, weights: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> "Grid":
        """Return the grid of weights (layers, heads, Q, K) whose rows and columns have these labels."""
        layers, heads, queries, keys = weights.shape
        return cls(layers, heads, queries, keys, cells_for(rows), cells_for(columns) + 1)

    def corner(self, layer: int, head: int) -> tuple[int, int]:
        """Return row and column of the first cell of a panel; layer and head count from 0."""
        row = self.gap + self.top + layer * (self.queries + self.gap + self.top)
        return row, self.gap + self.left + head * (self.keys + self.gap)

    @property
    def bar(self) -> tuple[int, int]:
        """Row and column of the upper end of the colour bar, beside the first layer."""
        row, column = self.corner(0, self.heads)
        return row, column + self.gap

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the whole picture."""
        row, _ = self.corner(self.layers, 0)
        bar_row, bar_column = self.bar
        return max(row - self.top, bar_row + BAR + self.gap), max(bar_column + 3 * self.gap, LEAST)


def draw_attention(pair: PairAttention, kind: str) -> Picture:
    """Draw the weights of one kind, "memory", "encoder" or "decoder": a panel per layer and head, one colour scale."""
    weights, rows, columns = pair.weights[kind], labels(pair.queries(kind)), labels(pair.keys(kind))
    grid = Grid.of(weights, rows, columns)
    image = rendered(texts_of(grid, TITLES[kind], rows, columns), grid.size) // 2  # a grey of the palette
    copy_labels(image, grid)
    for layer, head in np.ndindex(grid.layers, grid.heads):
        paint(image, grid.corner(layer, head), weights[layer, head])
    paint(image, grid.bar, np.linspace(1, 0, BAR * CELL)[:, None] ** 2, height=1)
    return as_png(image)


def labels(pieces: Sequence[str]) -> list[str]:
    """Return pieces as the picture shows them: a dot for a space, cut if they are long."""
    printable = ("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in piece) for piece in pieces)
    texts = (piece.replace("\u2581", "·") for piece in printable)
    return [text if len(text) <= WIDEST else text[: WIDEST - 1] + "…" for text in texts]


def cells_for(texts: Sequence[str]) -> int:
    """Return the number of cells that the longest text takes."""
    return 1 + round(CHARACTER * max(map(len, texts)))


def texts_of(grid: Grid, title: str, rows: list[str], columns: list[str]) -> Iterator[tuple[float, float, str, dict]]:
    """Yield every text as row, column, text and alignment; the labels of rows and columns for the first panel alone."""
    yield 1, grid.gap, title, {"va": "center"}
    row, column = grid.corner(0, 0)
    for number, text in enumerate(rows):
        yield row + number + 0.5, column - 0.4, text, {"va": "center", "ha": "right"}
    for number, text in enumerate(columns):
        yield row - 0.3, column + number + 0.5, text, {"va": "bottom", "ha": "center", "rotation": 90}
    for head in range(grid.heads):
        row, column = grid.corner(0, head)
        yield row - grid.top + 0.5, column, f"head {head + 1}", {"va": "center", "weight": "bold"}
    for layer in range(grid.layers):
        row, column = grid.corner(layer, 0)
        yield row - 0.6, column - 0.4, f"layer {layer + 1}", {"va": "bottom", "ha": "right", "weight": "bold"}
    row, column = grid.bar
    yield row - 1, column, "weight", {"va": "center"}
    for shade in SHADES:
        yield row + BAR * (1 - shade**0.5), column + 1.4, str(shade), {"va": "center"}


def rendered(texts: Iterator[tuple[float, float, str, dict]], size: tuple[int, int]) -> np.ndarray:
    """Draw texts, black on white. Returns their brightness, uint8 (height * CELL, width * CELL).

    A character that no font has becomes a box, without a warning for each.
    """
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # it logs each font that it finds
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # here: it need not be installed for the rest
    from matplotlib.figure import Figure

    height, width = size
    canvas = FigureCanvasAgg(Figure((width, height), dpi=CELL, facecolor="white"))  # an inch is a cell
    style = {"family": families(), "size": FONT * 72 / CELL, "color": "black", "parse_math": False}  # $ is a character
    for row, column, text, alignment in texts:
        canvas.figure.text(column / width, 1 - row / height, text, **style, **alignment)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, 0].copy()


def families() -> list[str]:
    """Return the fonts of labels: matplotlib's own, then those installed that have Chinese and Japanese characters."""
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    return ["DejaVu Sans", *(name for name in FALLBACKS if name in installed)]


def copy_labels(image: np.ndarray, grid: Grid) -> None:
    """Copy the labels of the first panel to the others: those of rows to each layer, those of columns to each panel."""

    def area(row: int, column: int, height: int, width: int) -> tuple[slice, slice]:
        return slice(row * CELL, (row + height) * CELL), slice(column * CELL, (column + width) * CELL)

    (first_row, first_column), above = grid.corner(0, 0), grid.top - 1
    of_rows = image[area(first_row, 0, grid.queries, first_column)].copy()
    of_columns = image[area(first_row - above, first_column, above, grid.keys)].copy()
    for head in range(grid.heads):
        _, column = grid.corner(0, head)
        image[area(first_row - above, column, above, grid.keys)] = of_columns
    width = grid.corner(0, grid.heads)[1] - first_column
    of_heads = image[area(first_row - grid.top, first_column, grid.top, width)]
    for layer in range(1, grid.layers):
        row, _ = grid.corner(layer, 0)
        image[area(row, 0, grid.queries, first_column)] = of_rows
        image[area(row - grid.top, first_column, grid.top, width)] = of_heads


def paint(image: np.ndarray, corner: tuple[int, int], weights: np.ndarray, height: int = CELL) -> None:
    """Colour one cell per weight (Q, K), from the cell `corner` on, and draw a frame. `height`: of a cell, in pixels.

    Colour grows with the root of a weight, so that small weights are told apart, as on the page.
    """
    row, column = (place * CELL for place in corner)
    rows, columns = weights.shape[0] * height, weights.shape[1] * CELL
    image[row - 1 : row + rows + 1, column - 1 : column + columns + 1] = GREYS // 2
    shades = GREYS + np.round((255 - GREYS) * np.sqrt(np.clip(weights, 0, 1)))
    cells = np.repeat(np.repeat(shades.astype(np.uint8), height, axis=0), CELL, axis=1)
    image[row : row + rows, column : column + columns] = cells


def as_png(image: np.ndarray) -> Picture:
    """Return an image of numbers below 256, of greys and then of shades of blue, as a Picture."""
    from matplotlib import colormaps
    from PIL import Image

    greys = np.repeat(np.linspace(0, 255, GREYS)[:, None], 3, axis=1)
    blues = 255 * colormaps["Blues"](np.linspace(0, 1, 256 - GREYS))[:, :3]
    picture = Image.fromarray(image, "P")
    picture.putpalette(np.round(np.concatenate([greys, blues])).astype(np.uint8).tobytes())
    file = io.BytesIO()
    picture.save(file, format="png")
    return Picture(file.getvalue(), *picture.size)


def picture_summary(tag: str, picture: Picture, description: str) -> Summary:
    """Return a summary that TensorBoard shows among its images. description: Markdown."""
    strings = [str(picture.width).encode(), str(picture.height).encode(), picture.png]
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=len(strings))])
    tensor = TensorProto(dtype=DT_STRING, tensor_shape=shape, string_val=strings)
    metadata = create_summary_metadata(display_name=None, description=description)
    return Summary(value=[Summary.Value(tag=tag, tensor=tensor, metadata=metadata)])
