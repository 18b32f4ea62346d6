"""Tables in Markdown, for report.md and for TensorBoard."""

import html
import re
from collections.abc import Iterable, Sequence

from keras_transformer.ground.files import on_one_line

MARKUP = re.compile(r"([\\`*_\[\]|])")  # characters that Markdown would take for its own


def samples_table(samples: Iterable[tuple[str, str, str]]) -> str:
    """Return (source, reference, translation) per sample as a Markdown table."""
    return table_of(("source", "reference", "translation"), (map(escaped, sample) for sample in samples))


def table(*rows: tuple[str, object]) -> str:
    """Return (name, value) pairs as a Markdown table."""
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def table_of(heads: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Return rows of cells, each of them Markdown on one line, as a Markdown table."""
    first, *others = ("| " + " | ".join(row) + " |" for row in (heads, *rows))
    return "\n".join([first, "|" + "---|" * len(heads), *others])


def escaped(text: str) -> str:
    """Return text as Markdown that shows it, on one line, whatever is in it."""
    return MARKUP.sub(r"\\\1", html.escape(on_one_line(text), quote=False))
