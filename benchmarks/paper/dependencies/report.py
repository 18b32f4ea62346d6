"""The result of `benchmarks.paper.long_dependencies`: accuracy against distance, as Markdown and as a plot."""

import pathlib
from typing import Any

from benchmarks.paper.dependencies.encoders import BASE, HELD_OUT, KERNEL_SIZE, KINDS, NEIGHBOURHOOD
from benchmarks.paper.dependencies.tasks import ASKED, VALUES, VOCABULARY
from benchmarks.paper.layer_kinds.picture import COLOURS

NAMES = {
    "self_attention": "self-attention",
    "recurrent": "recurrent (GRU, forward)",
    "convolutional": f"convolutional (k = {KERNEL_SIZE})",
    "dilated": f"convolutional, dilated (k = {KERNEL_SIZE})",
    "restricted": f"self-attention, restricted (r = {NEIGHBOURHOOD})",
}
CHANCE = 1 / VALUES
NOTES = """\
Each number is the share of right answers of one model, trained for this distance alone, on {held_out} rows that it has
not seen, {asked} answers each: its standard error is at most {error:.1%}, even if the answers of a row are all right
or all wrong; that of the draw of weights and data is not in it. Guessing gives {chance:.1%}. All kinds have {layers}
blocks of width {width}, pre-norm, without dropout, as many parameters within {apart:.1%} (the inner width of the
feed-forward network makes up for the rest), the same {steps:,} steps of {rows} rows and the same schedule of the same
Adam. Nothing was tuned per kind.

**copy**: four words, then words of another alphabet, then four places to fill with the four words.
**lookup**: four pairs of a key and a value, then pairs with other keys, then the four keys in any order: what are their
values?

What a stack of {layers} blocks can see at all, in words to each side: convolutional {convolutional}, dilated {dilated},
restricted {restricted}. Beyond that, no training helps: the gradient between the answer and what it asks for is zero
(`python -m benchmarks.paper.table1` measures it). The recurrent layer and self-attention see the whole row. A recurrent
layer must keep what it has read through every step between; self-attention reaches it in one."""


def reach(kind: str) -> int:
    """Return how many words to each side the whole stack sees."""
    if kind == "restricted":
        return BASE.encoder_layers * (NEIGHBOURHOOD // 2)
    dilations = [2**number if kind == "dilated" else 1 for number in range(BASE.encoder_layers)]
    return sum(dilations) * (KERNEL_SIZE // 2)


def accuracies(results: dict[str, Any], task: str, kind: str) -> dict[int, float]:
    """Return the accuracy by distance, shortest first."""
    cells = (cell for cell in results["cells"] if (cell["task"], cell["kind"]) == (task, kind))
    return {cell["distance"]: cell["accuracy"] for cell in sorted(cells, key=lambda cell: cell["distance"])}


def markdown(results: dict[str, Any]) -> str:
    """Return the whole file. `results` is what long_dependencies.json holds."""
    parameters = {
        task: [cell["parameters"] for cell in results["cells"] if cell["task"] == task] for task in VOCABULARY
    }
    notes = NOTES.format(
        held_out=HELD_OUT,
        asked=ASKED,
        error=(0.25 / HELD_OUT) ** 0.5,
        chance=CHANCE,
        layers=BASE.encoder_layers,
        width=BASE.d_model,
        apart=max(max(counts) / min(counts) - 1 for counts in parameters.values() if counts),
        **{kind: reach(kind) for kind in ("convolutional", "dilated", "restricted")},
        **results["effort"],
    )
    parts = [
        "# Long dependencies",
        f"`{results['command']}` on {results['machine']}; {results['versions']}. Training all models took "
        f"{sum(cell['seconds'] for cell in results['cells']) / 60:.0f} minutes.",
        "![Accuracy against distance](long_dependencies.png)",
        *(f"## {task}, right answers by distance\n\n" + "\n".join(rows(results, task)) for task in VOCABULARY),
        notes,
    ]
    return "\n\n".join(parts) + "\n"


def rows(results: dict[str, Any], task: str) -> list[str]:
    distances = results["distances"]
    lines = [
        "| encoder | parameters | " + " | ".join(map(str, distances)) + " |",
        "|---|---:|" + "---:|" * len(distances),
    ]
    for kind, name in NAMES.items():
        scores = accuracies(results, task, kind)
        counts = [cell["parameters"] for cell in results["cells"] if (cell["task"], cell["kind"]) == (task, kind)]
        if not counts:
            continue  # not asked for
        shown = (f"{scores[distance]:.1%}" if distance in scores else "" for distance in distances)
        lines.append(f"| {name} | {counts[0]:,} | " + " | ".join(shown) + " |")
    return lines


def draw(results: dict[str, Any], path: pathlib.Path) -> None:
    """Write the picture of accuracy against distance, a panel per task."""
    from matplotlib.figure import Figure

    figure = Figure((10, 4), layout="constrained")
    for axis, task in zip(figure.subplots(1, len(VOCABULARY), sharey=True), VOCABULARY, strict=True):
        for kind in KINDS:
            scores = accuracies(results, task, kind)
            axis.plot(scores.keys(), scores.values(), marker="o", color=COLOURS[kind], label=NAMES[kind])
        axis.axhline(CHANCE, color="grey", linestyle=":", label="guessing")
        axis.set(title=task, xscale="log", xlabel="distance, words", ylim=(0, 1.03))
        axis.set_xticks(results["distances"], list(map(str, results["distances"])))
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    figure.axes[0].set_ylabel("share of right answers")
    figure.axes[0].legend(fontsize=8)
    figure.savefig(path, dpi=110)
