"""The rule `endings` of a search: a sentence's output must go on with one of N sequences where its prefix ends.

A sequence is M tokens long or shorter, then PAD; an empty one leaves the sentence free, and one of -1 does not exist.
"""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.ground.tokens import PAD, SPECIAL
from keras_transformer.search.rules.tokens_among import tokens_among
from keras_transformer.search.scores import NEVER
from keras_transformer.search.state import BeamState


class InEnding(NamedTuple):
    """Where the hypotheses of a search are in the endings of their sentences."""

    is_inside: Any  # bool (B, K): which must take a token of an ending now
    is_possible: Any  # bool (B, K, N): which endings go on from what they have
    tokens: Any  # int32 (B, N): the token of each ending that comes now


def in_ending(state: BeamState) -> InEnding:
    """Compare what the hypotheses have after the rule `prefixes` with the rule `endings`."""
    endings, begins = state.rules["endings"], prefix_lengths(state)
    sentences, hypotheses, room = ops.shape(state.ids)
    longest = ops.shape(endings)[2]
    count = ops.expand_dims(state.position - begins, 1)  # (B, 1): tokens after the prefix
    places = ops.minimum(ops.expand_dims(begins, 1) + ops.arange(longest), room)  # (B, M)
    places = ops.broadcast_to(ops.expand_dims(places, 1), (sentences, hypotheses, longest))
    ids = ops.concatenate([state.ids, ops.full((sentences, hypotheses, 1), PAD, dtype="int32")], axis=2)
    written = ops.expand_dims(ops.take_along_axis(ids, places, axis=2), 2)  # (B, K, 1, M)
    is_later = ops.expand_dims(ops.arange(longest) >= count, (1, 2))  # (B, 1, 1, M)
    endings = ops.expand_dims(endings, 1)  # (B, 1, N, M)
    agrees = ops.logical_or(endings == written, ops.logical_or(endings == PAD, is_later))
    is_possible = ops.all(agrees, axis=3)
    is_now = ops.arange(longest) == ops.expand_dims(count, 2)  # (B, 1, M)
    tokens = ops.sum(ops.where(is_now, endings[:, 0], PAD), axis=2)
    is_complete = ops.any(ops.logical_and(is_possible, ops.expand_dims(tokens == PAD, 1)), axis=2)
    return InEnding(ops.logical_and(count >= 0, ops.logical_not(is_complete)), is_possible, tokens)


def prefix_lengths(state: BeamState):
    """Return the number of tokens of each sentence's rule `prefixes`: int32 (B,)."""
    return ops.sum(ops.cast(state.rules["prefixes"] != PAD, "int32"), axis=1)


def may_be_inside(state: BeamState):
    """Return whether the endings of a sentence can reach to this position: bool ()."""
    return ops.any(state.position < prefix_lengths(state) + ops.shape(state.rules["endings"])[2])


def is_inside_ending(state: BeamState):
    """Return which hypotheses must take a token of an ending now: bool (B, K)."""
    nowhere = ops.zeros_like(state.log_probs, dtype="bool")
    return ops.cond(may_be_inside(state), lambda: in_ending(state).is_inside, lambda: nowhere)


def is_any_inside_ending(state: BeamState):
    """Return whether a live hypothesis must take a token of an ending now: bool ()."""
    return ops.any(ops.logical_and(is_inside_ending(state), state.log_probs > NEVER / 2))


def allowed_by_endings(state: BeamState, is_allowed):
    """Return which tokens may come if, without the endings, these may: bool (B, K, V), the same is returned."""

    def restricted():
        is_inside, is_possible, tokens = in_ending(state)
        vocab_size = ops.shape(is_allowed)[2]
        tokens = ops.maximum(ops.expand_dims(tokens, 1), PAD)  # (B, 1, N)
        is_of_ending = tokens_among(tokens, is_possible, vocab_size)
        is_of_ending = ops.logical_and(is_of_ending, ops.arange(vocab_size) > max(SPECIAL))
        return ops.where(ops.expand_dims(is_inside, 2), is_of_ending, is_allowed)

    return ops.cond(may_be_inside(state), restricted, lambda: is_allowed)
