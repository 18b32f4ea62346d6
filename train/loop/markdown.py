"""Tables in Markdown, for report.md and for TensorBoard."""

from keras_transformer.console import on_one_line


def samples_table(samples):
    """Samples as a Markdown table."""
    rows = ["| source | reference | translation |", "|---|---|---|"]
    rows += ["| " + " | ".join(on_one_line(cell).replace("|", "\\|") for cell in sample) + " |" for sample in samples]
    return "\n".join(rows)


def table(*rows):
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])
