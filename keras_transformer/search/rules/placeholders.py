"""The rule `placeholders` of a search: tokens that an output must have as often as its source, and in no other output.

They stand for protected spans (text/spans.py). The rule is int32 (B, N, 2): each token, and how often it must come.
"""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.ground.tokens import EOS
from keras_transformer.search.rules.rule import Rule
from keras_transformer.search.scores import NEVER
from keras_transformer.search.state import BeamState


def rule_of_placeholders(placeholders, source_ids) -> dict[str, Any]:
    """Return the rule of source sentences by its name; nothing for a model that knows no placeholders.

    placeholders: the ids of N pieces. Shapes: source_ids int (B, S).
    """
    if not len(placeholders):
        return {}
    tokens = ops.reshape(ops.convert_to_tensor(list(placeholders), dtype="int32"), (1, -1))  # (1, N)
    source_ids = ops.expand_dims(ops.convert_to_tensor(source_ids, dtype="int32"), 2)  # (B, S, 1)
    counts = ops.sum(ops.cast(source_ids == ops.expand_dims(tokens, 0), "int32"), axis=1)  # (B, N)
    return {"placeholders": ops.stack([ops.broadcast_to(tokens, ops.shape(counts)), counts], axis=2)}


class Placeholders(NamedTuple("Placeholders", [("placeholders", Any)]), Rule):
    @property
    def tokens(self):
        return self.placeholders[:, :, 0]

    @property
    def counts(self):
        return self.placeholders[:, :, 1]

    @property
    def looks_at(self) -> int:
        return self.placeholders.shape[1]

    def needed(self, source_tokens) -> tuple[Any, Any]:
        return ops.sum(self.counts, axis=1), source_tokens - 1  # a source ends with EOS

    def pieces(self) -> tuple:
        return (self.tokens,)

    def in_columns(self, columns_of, pieces) -> "Placeholders":
        return Placeholders(ops.stack([columns_of(self.tokens), self.counts], axis=2))

    def is_asked(self, state: BeamState) -> Any:
        is_wanted = ops.expand_dims(ops.sum(self.counts, axis=1) > 0, 1)
        return ops.any(ops.logical_and(is_wanted, state.log_probs > NEVER / 2))

    def may_come(self, state: BeamState, tokens) -> Any:
        return ops.logical_not(ops.any(ops.expand_dims(tokens, 2) == self.placeholders[0, :, 0], axis=2))

    def left(self, state: BeamState):
        """Return how often each placeholder must still come in each hypothesis: int32 (B, K, N)."""
        is_output = ops.arange(ops.shape(state.ids)[2]) < state.position  # (T,)
        is_token = ops.expand_dims(state.ids, 3) == ops.expand_dims(self.tokens, (1, 2))  # (B, K, T, N)
        written = ops.sum(ops.cast(ops.logical_and(is_token, ops.expand_dims(is_output, (0, 1, 3))), "int32"), axis=2)
        return ops.maximum(ops.expand_dims(self.counts, 1) - written, 0)

    def allowed(self, state: BeamState, is_allowed) -> Any:
        """A placeholder that came as often as it must may not come again, and EOS must wait for all of them.

        If only as many positions are left, or nothing else may come, those that are missing must come now; if none is,
        the output ends.
        """
        counts = self.left(state)
        total = ops.sum(counts, axis=2, keepdims=True)  # (B, K, 1)
        numbers = ops.arange(ops.shape(is_allowed)[2])
        is_each = ops.cast(
            ops.expand_dims(self.tokens[0], 1) == numbers, "float32"
        )  # (N, V): the same for every sentence
        is_left = ops.matmul(ops.cast(counts > 0, "float32"), is_each) > 0  # (B, K, V)
        is_done = ops.logical_and(ops.any(is_each > 0, axis=0), ops.logical_not(is_left))
        is_end = numbers == EOS
        is_free = ops.logical_not(ops.logical_or(is_done, ops.logical_and(total > 0, is_end)))
        is_allowed = ops.logical_and(is_allowed, is_free)
        is_stuck = ops.logical_not(ops.any(is_allowed, axis=2, keepdims=True))
        room = ops.expand_dims(state.rules.limits - 1 - state.position, (1, 2))  # positions before the last EOS
        is_due = ops.logical_and(total > 0, ops.logical_or(room <= total, is_stuck))
        is_allowed = ops.where(is_due, is_left, is_allowed)
        return ops.logical_or(is_allowed, ops.logical_and(ops.logical_and(is_stuck, total == 0), is_end))
