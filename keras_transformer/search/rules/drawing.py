"""The rule of a search whose sentences draw their tokens: sampling with a temperature, top k and top p.

Sentences that draw do so from P^(1 / temperature), with 0.001 for a temperature below it. What is drawn is a function
of seed, hypothesis, position and probabilities; the seed becomes one of the source too (`of_sources`).
"""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.ground.bits import mixed, modulo_2_to_32
from keras_transformer.ground.tokens import PAD
from keras_transformer.layers.gather import at_columns
from keras_transformer.search.rules.rule import Rule, of_each
from keras_transformer.search.scores import NEVER
from keras_transformer.search.state import BeamState, Candidates
from keras_transformer.search.top_k import BLOCK_WIDTHS, block_width


class Drawing(
    NamedTuple("Drawing", [("temperatures", Any), ("top_ks", Any), ("top_ps", Any), ("seeds", Any)]), Rule
):  # float32, int32, float32, int32: all (B,)
    def of_sources(self, source_ids) -> "Drawing":
        return self._replace(seeds=of_sources(self.seeds, source_ids))

    def is_drawing(self):
        """Return which sentences draw their tokens: bool (B,)."""
        return self.temperatures > 0

    def is_asked(self, state: BeamState) -> Any:
        return ops.any(self.temperatures != 0)

    def drawn(self, state: BeamState, log_probs) -> Candidates:
        """Let each hypothesis draw its next token: log_probs (B, K, V) of `log_probs_under`.

        Candidates keep these log-probabilities, which are not those of the distribution that is drawn from.
        """
        _, hypotheses, vocab_size = ops.shape(log_probs)
        scaled = ops.where(log_probs > NEVER / 2, log_probs / ops.maximum(of_each(self.temperatures), 1e-3), NEVER)
        weights = ops.exp(scaled - ops.max(scaled, axis=-1, keepdims=True))
        is_kept = ops.cond(
            ops.any(ops.logical_or(self.top_ks != 0, self.top_ps < 1.0)),
            lambda: self.is_among_best(scaled),
            lambda: ops.ones_like(scaled, dtype="bool"),
        )
        weights = ops.reshape(ops.where(is_kept, weights, 0.0), (-1, vocab_size))
        numbers = ops.expand_dims(ops.arange(hypotheses), 0)
        height = uniform(ops.expand_dims(self.seeds, 1), numbers, state.position)  # (B, K)
        tokens = ops.reshape(column_at(weights, ops.reshape(height, (-1, 1))), ops.shape(height))
        gained = ops.take_along_axis(log_probs, ops.expand_dims(tokens, 2), axis=2)[..., 0]
        parents = ops.broadcast_to(numbers, ops.shape(state.log_probs))
        return Candidates(state.log_probs + gained, ops.cast(parents, "int32"), tokens)

    def is_among_best(self, scaled):
        """Return which tokens top k and top p leave, of equals the first ones: bool (B, K, V), the shape of `scaled`.

        Sorting the vocabulary takes longer than all else that a draw does.
        """
        vocab_size = ops.shape(scaled)[-1]
        falling, order = ops.top_k(scaled, vocab_size)
        probabilities = ops.softmax(falling, axis=-1)
        reached = ops.cumsum(probabilities, axis=-1) - probabilities  # by the more probable ones
        top_ks, ranks = of_each(self.top_ks), ops.arange(vocab_size)
        is_kept = ops.logical_and(
            ops.logical_or(top_ks == 0, ranks < top_ks),
            ops.logical_or(ranks == 0, reached < of_each(self.top_ps)),
        )
        last = ops.sum(ops.cast(is_kept, "int32"), axis=-1, keepdims=True) - 1  # its rank
        lowest, column = ops.take_along_axis(falling, last, axis=-1), ops.take_along_axis(order, last, axis=-1)
        is_equal = ops.logical_and(scaled == lowest, ranks <= ops.cast(column, "int32"))
        return ops.logical_or(scaled > lowest, is_equal)


def column_at(weights, height):
    """Return the first column whose weight, with those before it, is more than `height` of the sum of all.

    A column without weight is never it, if any has some. Sums of blocks are added first: one pass, and small errors.

    Shapes: weights float32 (N, V), height float32 (N, 1), from 0 to 1 -> int32 (N,).
    """
    width = block_width(weights.shape[1] or BLOCK_WIDTHS[0])
    weights = ops.pad(weights, ((0, 0), (0, -ops.shape(weights)[1] % width)))
    blocks = ops.reshape(weights, (-1, ops.shape(weights)[1] // width, width))
    sums = ops.sum(blocks, axis=2)
    height = height * ops.sum(sums, axis=1, keepdims=True)
    block, below = first_above(sums, height)
    place, _ = first_above(at_columns(blocks, block)[:, 0], height - below)
    return (block * width + place)[:, 0]


def first_above(weights, height):
    """Return the first column that has weight and up to which weights exceed `height` in sum; and the sum before it.

    If there is none, since sums are rounded, it is the last one that has weight.

    Shapes: weights float32 (N, C), height float32 (N, 1) -> int32 (N, 1), float32 (N, 1).
    """
    sums, columns = ops.cumsum(weights, axis=1), ops.arange(ops.shape(weights)[1], dtype="int32")
    last = ops.max(ops.where(weights > 0, columns, 0), axis=1, keepdims=True)
    is_above = ops.logical_and(weights > 0, sums > height)
    column = ops.min(ops.where(is_above, columns, last), axis=1, keepdims=True)
    return column, at_columns(sums - weights, column)


def of_sources(seeds, source_ids):
    """Return seeds that differ from source to source, so that sentences with one seed draw different numbers.

    Shapes: seeds int32 (B,), source_ids int (B, S), in which PAD counts nothing -> int32 (B,).
    """
    positions = ops.expand_dims(ops.arange(ops.shape(source_ids)[1]), 0)
    of_tokens = ops.cast(ops.right_shift(bits_of(source_ids, positions), ops.cast(16, "uint32")), "int32")
    sums = ops.sum(ops.where(source_ids == PAD, 0, of_tokens), axis=1)  # below 2^31 for 32,768 tokens
    return ops.cast(ops.right_shift(bits_of(seeds, sums), ops.cast(1, "uint32")), "int32")


def uniform(*numbers):
    """Return a number from 0 to 1, without 1, that is a function of integers, whatever else is in the batch.

    Shapes: int32, broadcast against each other -> float32.
    """
    return ops.cast(ops.right_shift(bits_of(*numbers), ops.cast(8, "uint32")), "float32") / 2.0**24


def bits_of(*numbers):
    """Return 32 bits that look random and are a function of integers. Shapes: int32, broadcast -> uint32."""
    bits = ops.cast(0, "uint32")
    for number in numbers:
        bits = mixed(ops.bitwise_xor(bits, modulo_2_to_32(ops.cast(number, "uint32"))) + ops.cast(0x9E3779B9, "uint32"))
    return bits
