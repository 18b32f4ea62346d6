"""The k largest of many numbers, exactly, in one pass over them."""

from typing import Any

from keras import ops

from keras_transformer.layers.gather import at_columns

BLOCK_WIDTHS = (64, 80, 48, 96, 112, 128, 32)  # numbers per block, the best first: maxima and blocks are both few
LOWEST = -3e38  # below every logit, and finite


def top_k(scores, k: int):
    """Return the k largest of each row, in falling order, and their columns.

    The k largest numbers lie in the k blocks with the largest maxima. So one pass finds the maximum of each block, and
    two small selections do the rest: first among the maxima, then among the numbers of the chosen blocks. If there are
    few blocks, one selection among all numbers is faster.

    Shapes: scores float (N, V), k at most V; if the graph does not know V, V is a multiple of BLOCK_WIDTHS[0]
    -> float (N, k), int32 (N, k).
    """
    columns = scores.shape[-1]
    if columns is None:  # of a short vocabulary
        width = BLOCK_WIDTHS[0]
        return ops.cond(
            ops.shape(scores)[-1] > 2 * k * width,
            lambda: in_blocks(scores, k, width),
            lambda: selected(scores, k),
        )
    width = block_width(columns)
    blocks = -(-columns // width)
    if blocks <= 2 * k:
        return selected(scores, k)
    missing = blocks * width - columns
    if missing:
        scores = ops.pad(scores, ((0, 0), (0, missing)), constant_values=LOWEST)
    return in_blocks(scores, k, width)


def in_blocks(scores, k: int, width: int):
    """Return what `top_k` returns, by blocks of `width` columns: V is a multiple of it."""
    scores = ops.reshape(scores, (-1, ops.shape(scores)[1] // width, width))
    _, chosen = selected(ops.max(scores, axis=-1), k)  # (N, k)
    largest, places = selected(ops.reshape(at_columns(scores, chosen), (-1, k * width)), k)
    return largest, at_columns(chosen, places // width) * width + places % width


def selected(scores, k: int) -> tuple[Any, Any]:
    """Return what `top_k` returns, from one selection among all numbers."""
    largest, columns = ops.top_k(scores, k)
    return largest, ops.cast(columns, "int32")


def block_width(columns: int) -> int:
    """Return the first of BLOCK_WIDTHS that divides `columns`; if none does, the last block has to be filled up."""
    return next((width for width in BLOCK_WIDTHS if columns % width == 0), BLOCK_WIDTHS[0])
