"""The rule `placeholders` of a search: tokens that an output must have as often as its source, and in no other output.

They stand for protected spans (text/spans.py). The rule is int32 (B, N, 2): each token, and how often it must come.
"""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.ground.tokens import EOS
from keras_transformer.search.scores import NEVER
from keras_transformer.search.state import BeamState, Rules


def rule_of_placeholders(placeholders, source_ids) -> Rules:
    """Return the rule of source sentences; none for a model that knows no placeholders.

    placeholders: the ids of N pieces. Shapes: source_ids int (B, S).
    """
    if not len(placeholders):
        return {}
    tokens = ops.reshape(ops.convert_to_tensor(list(placeholders), dtype="int32"), (1, -1))  # (1, N)
    source_ids = ops.expand_dims(ops.convert_to_tensor(source_ids, dtype="int32"), 2)  # (B, S, 1)
    counts = ops.sum(ops.cast(source_ids == ops.expand_dims(tokens, 0), "int32"), axis=1)  # (B, N)
    return {"placeholders": ops.stack([ops.broadcast_to(tokens, ops.shape(counts)), counts], axis=2)}


def all_of(rules: Rules):
    """Return how many tokens of the rule the output of each sentence must have: int32 (B,)."""
    return ops.sum(rules["placeholders"][:, :, 1], axis=1)


class Left(NamedTuple):
    """What the hypotheses of a search must still have."""

    tokens: Any  # int32 (B, N)
    counts: Any  # int32 (B, K, N): how often each must still come


def left(state: BeamState) -> Left:
    """Return which placeholders each hypothesis must still have."""
    tokens, wanted = state.rules["placeholders"][:, :, 0], state.rules["placeholders"][:, :, 1]
    is_output = ops.arange(ops.shape(state.ids)[2]) < state.position  # (T,)
    is_token = ops.expand_dims(state.ids, 3) == ops.expand_dims(tokens, (1, 2))  # (B, K, T, N)
    written = ops.sum(ops.cast(ops.logical_and(is_token, ops.expand_dims(is_output, (0, 1, 3))), "int32"), axis=2)
    return Left(tokens, ops.maximum(ops.expand_dims(wanted, 1) - written, 0))


def is_any_wanted(state: BeamState):
    """Return whether a live hypothesis is of a sentence with placeholders: bool ()."""
    return ops.any(ops.logical_and(ops.expand_dims(all_of(state.rules) > 0, 1), state.log_probs > NEVER / 2))


def is_placeholder(tokens, rules: Rules):
    """Return which tokens are placeholders: int32 (rows, any number) -> bool of the same shape."""
    return ops.any(ops.expand_dims(tokens, 2) == rules["placeholders"][0, :, 0], axis=2)


def allowed_by_placeholders(state: BeamState, is_allowed):
    """Return which tokens may come if, without the rule, these may: bool (B, K, V), the same is returned.

    A placeholder that came as often as it must may not come again, and EOS must wait for all of them. If only as many
    positions are left, or nothing else may come, those that are missing must come now; if none is, the output ends.
    """
    tokens, counts = left(state)
    total = ops.sum(counts, axis=2, keepdims=True)  # (B, K, 1)
    numbers = ops.arange(ops.shape(is_allowed)[2])
    is_each = ops.cast(ops.expand_dims(tokens[0], 1) == numbers, "float32")  # (N, V): the same for every sentence
    is_left = ops.matmul(ops.cast(counts > 0, "float32"), is_each) > 0  # (B, K, V)
    is_done = ops.logical_and(ops.any(is_each > 0, axis=0), ops.logical_not(is_left))
    is_end = numbers == EOS
    is_free = ops.logical_not(ops.logical_or(is_done, ops.logical_and(total > 0, is_end)))
    is_allowed = ops.logical_and(is_allowed, is_free)
    is_stuck = ops.logical_not(ops.any(is_allowed, axis=2, keepdims=True))
    room = ops.expand_dims(state.rules["limits"] - 1 - state.position, (1, 2))  # positions before the last EOS
    is_due = ops.logical_and(total > 0, ops.logical_or(room <= total, is_stuck))
    is_allowed = ops.where(is_due, is_left, is_allowed)
    return ops.logical_or(is_allowed, ops.logical_and(ops.logical_and(is_stuck, total == 0), is_end))
