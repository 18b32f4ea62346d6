"""Tables in Markdown, for report.md and for TensorBoard."""

from collections.abc import Iterable

from keras_transformer.console import on_one_line


def samples_table(samples: Iterable[tuple[str, str, str]]) -> str:
    """Return (source, reference, translation) per sample as a Markdown table."""
    rows = ["| source | reference | translation |", "|---|---|---|"]
    rows += ["| " + " | ".join(on_one_line(cell).replace("|", "\\|") for cell in sample) + " |" for sample in samples]
    return "\n".join(rows)


def table(*rows: tuple[str, object]) -> str:
    """Return (name, value) pairs as a Markdown table."""
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])
