"""The k largest of many numbers, exactly, in one pass over them."""

from keras import ops

from keras_transformer.decoding.gather import at_columns, rows_at

BLOCK_WIDTHS = (64, 80, 48, 96, 112, 128, 32)  # numbers per block, the best first: maxima and blocks are both few
LOWEST = -3e38  # below every logit, and finite


def top_k(scores, k: int):
    """Return the k largest of each row, in falling order, and their columns.

    The k largest numbers lie in the k blocks with the largest maxima. So one pass finds the maximum of each block, and
    two small selections do the rest: first among the maxima, then among the numbers of the chosen blocks.

    Shapes: scores float (N, V), V static, k at most V -> float (N, k), int32 (N, k).
    """
    width = block_width(scores.shape[-1])
    blocks = -(-scores.shape[-1] // width)
    if blocks <= 2 * k:
        return selected(scores, k)
    missing = blocks * width - scores.shape[-1]
    if missing:
        scores = ops.pad(scores, ((0, 0), (0, missing)), constant_values=LOWEST)
    scores = ops.reshape(scores, (-1, blocks, width))
    _, chosen = selected(ops.max(scores, axis=-1), k)  # (N, k)
    rows = ops.expand_dims(ops.arange(ops.shape(scores)[0]) * blocks, 1)
    candidates = rows_at(ops.reshape(scores, (-1, width)), ops.reshape(chosen + rows, (-1,)))  # (N * k, width)
    largest, places = selected(ops.reshape(candidates, (-1, k * width)), k)
    return largest, at_columns(chosen, places // width) * width + places % width


def selected(scores, k: int):
    """Return what `top_k` returns, from one selection among all numbers."""
    largest, columns = ops.top_k(scores, k)
    return largest, ops.cast(columns, "int32")


def block_width(columns: int) -> int:
    """Return the first of BLOCK_WIDTHS that divides `columns`; if none does, the last block has to be filled up."""
    return next((width for width in BLOCK_WIDTHS if columns % width == 0), BLOCK_WIDTHS[0])
