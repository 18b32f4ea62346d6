"""The rule of a search whose sentences draw their tokens: sampling with a temperature, top k and top p.

Sentences that draw do so from P^(1 / temperature), with 0.001 for a temperature below it. What is drawn is a function
of seed, hypothesis, position and probabilities; the seed becomes one of the source too (`of_sources`).
"""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.ground.bits import mixed, modulo_2_to_32
from keras_transformer.ground.tokens import PAD
from keras_transformer.search.rules.rule import Rule, of_each
from keras_transformer.search.scores import NEVER
from keras_transformer.search.state import BeamState, Candidates


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
        scaled, order = ops.top_k(scaled, vocab_size)
        probabilities = ops.softmax(scaled, axis=-1)
        reached = ops.cumsum(probabilities, axis=-1) - probabilities  # by the more probable ones
        ranks = ops.arange(vocab_size)
        is_kept = ops.logical_and(
            ops.logical_or(of_each(self.top_ks) == 0, ranks < of_each(self.top_ks)),
            ops.logical_or(ranks == 0, reached < of_each(self.top_ps)),
        )
        sums = ops.cumsum(ops.where(is_kept, probabilities, 0.0), axis=-1)  # (B, K, V)
        numbers = ops.expand_dims(ops.arange(hypotheses), 0)
        height = uniform(ops.expand_dims(self.seeds, 1), numbers, state.position)  # (B, K)
        is_below = ops.logical_and(is_kept, sums <= ops.expand_dims(height, 2) * sums[:, :, -1:])
        is_kept_and_possible = ops.logical_and(is_kept, scaled > NEVER / 2)
        last = ops.maximum(ops.sum(ops.cast(is_kept_and_possible, "int32"), axis=2) - 1, 0)
        place = ops.expand_dims(ops.minimum(ops.sum(ops.cast(is_below, "int32"), axis=2), last), 2)
        tokens = ops.take_along_axis(ops.cast(order, "int32"), place, axis=2)
        gained = ops.take_along_axis(log_probs, tokens, axis=2)[..., 0]
        parents = ops.broadcast_to(numbers, ops.shape(state.log_probs))
        return Candidates(state.log_probs + gained, ops.cast(parents, "int32"), tokens[..., 0])


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
