"""The result of `benchmarks.paper.table1` as Markdown: the measured table, the paper's, and where they differ."""

from collections.abc import Sequence
from typing import Any

from benchmarks.paper.layer_kinds.claims import CLAIMS, MEASURED, STACKED, Claim
from benchmarks.paper.layer_kinds.fit import Exponent, exponent

LONG = 256  # exponents are fitted to sentences of at least so many words, if there are three such lengths
NOTES = """\
**How it was measured.** A layer alone, without residual, norm and feed-forward network, in float32, on {batch}
sentences of n words, under XLA (Keras on JAX, on the processor). Heads are {head} wide. FLOPs and sequential
operations are counted in the graph that is timed: two FLOPs per multiplication and addition of a matrix product, and
the longest chain of products of which each waits for the one before it; a loop counts as often as it runs. Seconds are
medians of {rounds} rounds in which all kinds take turns; a star marks work that was timed once, because one turn took
more than {cap:g} s. An exponent in n is the slope of a line through the points on logarithmic axes, with its standard
error; the lengths are those of at least {long} words, and for path lengths all of them. An exponent in d is that of
two widths, which leave no error to estimate.

**Path lengths.** The gradient of output 0 is taken back through one layer after the other until it is not zero at input
n - 1, and the layers are counted. A forward recurrent layer never shows position 0 what comes later; there it is the
gradient of output n - 1 at input 0, one layer suffices, and it counts as often as its loop runs. For this measurement
alone the biases of the GRU keep its update gate near sigmoid(6) = 0.998: with the weights that it begins with, the
gradient would become too small for float32 on its way through the loop."""
DEPARTURES = """\
**Where it departs from the paper, and why.**

- *Self-attention has a smaller exponent in n than 2, and a larger one in d than 1.* Table 1 counts what mixes
  positions, 4 n² d FLOPs here. The layer also has four projections, 8 n d² FLOPs. Both parts are equal at n = 2 d: at
  d = 512, sentences of fewer than 1,024 words spend more on projections than on attention.
- *Restricted self-attention counts more FLOPs than r keys per query.* Blocks of r queries share a window of 2 r - 1
  keys, of which a mask leaves r per query; the last block is filled up. Its projections are those of self-attention,
  and for small r they are nearly all of its cost: so its exponent in d is nearer to 2 than to 1.
- *As a mask on full attention, the restriction saves no FLOPs.* The row is there to show it: its
  seconds should be those of full attention and of the mask.
- *The recurrent layer is linear in n, as the paper has it, and slow nevertheless.* Each step is a product of one row
  per sentence with a matrix, which leaves most of the processor idle and reads the whole matrix again. Where its
  exponent in d is below 2, the overhead of a step hides the growth of its product.
- *Exponents of short times are too small.* A call has a cost of its own, whatever n is.
- *Path lengths have constants.* A kernel of k words, with its output in the middle, reaches (k - 1) / 2 words further
  per layer, and a neighbourhood of r words (r - 1) / 2: that takes 2 k / (k - 1) times n / k layers, 3 times if k is 3,
  and 2 r / (r - 1) times n / r. With dilations 1, 2, 4 and so on a stack of log2 n layers reaches n - 1 words: log2 and
  not log_k, because the distances double whatever k is. With distances 1, k, k² and so on it would be log_k.

docs/table1.md says where the committed seconds depart further, and which of them are in doubt."""
PATHS = """\
Sequential operations and path lengths are those of the longest sentence measured, n = {longest:,}. For the convolution,
Table 1 prints O(log_k(n)); the text of section 4 says that this is of dilated convolutions, and O(n / k) of contiguous
kernels. Of its two path lengths here the first is contiguous, as is everything that is timed, the second dilated."""


def named(claim: Claim, sizes: dict[str, int]) -> str:
    return claim.name.format(**sizes)


def markdown(numbers: dict[str, Any]) -> str:
    """Return the whole file. `numbers` is what table1.json holds."""
    effort = numbers["effort"]
    notes = NOTES.format(batch=numbers["batch"], head=numbers["head"], long=shortest_fitted(numbers), **effort)
    parts = [
        "# Table 1, measured",
        f"`{numbers['command']}` on {numbers['machine']}; {numbers['versions']}.\n"
        f"Load of the machine in the minute before: {numbers['load_before']:.2f}; in the minute before the end: "
        f"{numbers['load_after']:.2f}. With a load, times are upper bounds; counts are not affected.",
        "![Seconds and FLOPs against the length of a sentence](table1.png)",
        "## Beside the paper",
        "\n".join(summary_rows(numbers)),
        PATHS.format(longest=max(numbers["lengths"])),
        notes,
        DEPARTURES,
        "## Exponents",
        "\n".join(exponent_rows(numbers)),
        "## Path lengths",
        "\n".join(path_rows(numbers)),
        *(part for d in numbers["widths"] for part in (f"## d = {d}", "\n".join(cell_rows(numbers, d)))),
    ]
    return "\n\n".join(parts) + "\n"


def shortest_fitted(numbers: dict[str, Any]) -> int:
    """Return the length from which on exponents are fitted."""
    long = [n for n in numbers["lengths"] if n >= LONG]
    return min(long) if len(long) >= 3 else min(numbers["lengths"])


def cells_of(numbers: dict[str, Any], kind: str, d: int | None = None) -> list[dict]:
    return [cell for cell in numbers["cells"] if cell["kind"] == kind and d in (None, cell["d"])]


def in_n(numbers: dict[str, Any], kind: str, d: int, key: str) -> Exponent:
    """The exponent of `key` in n."""
    cells = [cell for cell in cells_of(numbers, kind, d) if cell["n"] >= shortest_fitted(numbers)]
    return exponent([cell["n"] for cell in cells], [cell[key] for cell in cells])


def in_d(numbers: dict[str, Any], kind: str, key: str) -> Exponent:
    """The exponent of `key` in d, at the longest sentence."""
    cells = [cell for cell in cells_of(numbers, kind) if cell["n"] == max(numbers["lengths"])]
    return exponent([cell["d"] for cell in cells], [cell[key] for cell in cells])


def row(*cells) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def table(header: Sequence[str], rows: Sequence[str]) -> list[str]:
    return [row(*header), "|---|" + "---:|" * (len(header) - 1), *rows]


def longest_path(numbers: dict[str, Any], kind: str) -> int:
    """The path length of the longest sentence."""
    return max((each["n"], each["length"]) for each in numbers["paths"] if each["kind"] == kind)[1]


def summary_rows(numbers: dict[str, Any]) -> list[str]:
    longest, rows = max(numbers["lengths"]), []
    for kind, claim in CLAIMS.items():
        sequential = next(cell["sequential"] for cell in cells_of(numbers, kind) if cell["n"] == longest)
        stacks = (kind, "dilated") if kind == "convolutional" else (kind,)
        rows.append(
            row(
                named(claim, numbers["sizes"]),
                f"O({claim.complexity})",
                *(in_n(numbers, kind, d, "flops_forward") for d in numbers["widths"]),
                f"O({claim.sequential})",
                f"{sequential:,}",
                f"O({claim.path})",
                "; ".join(f"{longest_path(numbers, stack):,}" for stack in stacks),
            )
        )
    header = ["layer", "complexity, paper", *(f"FLOPs ~ n^, d = {d}" for d in numbers["widths"])]
    return table([*header, "sequential, paper", "counted", "path, paper", "measured"], rows)


def exponent_rows(numbers: dict[str, Any]) -> list[str]:
    measures = {"flops_forward": "FLOPs", "seconds_forward": "forward, s", "seconds_training": "both, s"}
    has_widths = len(numbers["widths"]) > 1
    rows = []
    for kind, claim in MEASURED.items():
        for key, name in measures.items():
            width = in_d(numbers, kind, key) if has_widths else ""
            rows.append(
                row(
                    f"{named(claim, numbers['sizes'])}: {name}",
                    claim.in_n,
                    *(in_n(numbers, kind, d, key) for d in numbers["widths"]),
                    claim.in_d,
                    width,
                )
            )
    header = ["", "in n, paper", *(f"measured, d = {d}" for d in numbers["widths"]), "in d, paper"]
    return table([*header, f"measured, n = {max(numbers['lengths']):,}"], rows)


def path_rows(numbers: dict[str, Any]) -> list[str]:
    by_place = {(each["kind"], each["n"]): each for each in numbers["paths"]}
    lengths = sorted({each["n"] for each in numbers["paths"]})
    rows = []
    for kind, claim in STACKED.items():
        counts = [by_place[kind, n]["length"] for n in lengths]
        slope = exponent(lengths, counts) if min(counts) < max(counts) else "0"
        rows.append(row(named(claim, numbers["sizes"]), f"O({claim.path})", *(f"{count:,}" for count in counts), slope))
    return table(["layer", "paper", *(f"n = {n:,}" for n in lengths), "exponent in n"], rows)


def cell_rows(numbers: dict[str, Any], d: int) -> list[str]:
    rows = []
    for kind, claim in MEASURED.items():
        for cell in cells_of(numbers, kind, d):
            star = "*" if cell["is_capped"] else ""
            rows.append(
                row(
                    named(claim, numbers["sizes"]),
                    f"{cell['n']:,}",
                    f"{cell['flops_forward'] / 1e6:,.2f}",
                    f"{cell['flops_training'] / 1e6:,.2f}",
                    f"{cell['sequential']:,}",
                    f"{cell['seconds_forward'] * 1e3:,.3f}{star}",
                    f"{cell['seconds_training'] * 1e3:,.3f}{star}",
                    f"{numbers['batch'] * cell['flops_training'] / cell['seconds_training'] / 1e9:,.1f}",
                )
            )
    return table(
        ["layer", "n", "MFLOP forward", "and backward", "sequential", "ms forward", "and backward", "GFLOP/s"], rows
    )
