"""A table of texts: aligned columns for a terminal, Markdown for report.md."""

from collections.abc import Sequence
from typing import NamedTuple

INTERVAL_NOTE = "±: half of the 95 per cent confidence interval, by bootstrap resampling"


class Table(NamedTuple):
    """A title, the heads of the columns, and rows of as many cells. The first column is text, the others numbers."""

    title: str
    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def lines(self) -> list[str]:
        """The title, then aligned columns, numbers to the right."""
        columns = list(zip(self.heads, *self.rows, strict=True))
        widths = [max(map(len, column)) for column in columns]
        lines = []
        for first, *others in (self.heads, *self.rows):
            cells = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
            lines.append("  ".join([f"  {first:{widths[0]}}", *cells]).rstrip())
        return [f"{self.title}:", *lines]

    def markdown(self) -> str:
        """The title as a line of its own, then a Markdown table."""
        rules = ["---", *["---:"] * (len(self.heads) - 1)]
        rows = ["| " + " | ".join(cells) + " |" for cells in (self.heads, rules, *self.rows)]
        return "\n".join([f"{self.title}:", "", *rows])
