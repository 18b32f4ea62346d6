"""The rule `forbidden` of a search: sequences of tokens that an output must not have.

It is int32 (B, N, M): N sequences of at most M tokens, with PAD before a shorter one; one of PAD alone forbids nothing.
"""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.ground.tokens import PAD
from keras_transformer.search.rules.rule import Rule
from keras_transformer.search.rules.tokens_among import tokens_among
from keras_transformer.search.state import BeamState


class Forbidden(NamedTuple("Forbidden", [("forbidden", Any)]), Rule):
    def in_columns(self, columns_of, pieces) -> "Forbidden":
        """What a sentence forbids, an output of it had: so these pieces have columns."""
        return Forbidden(columns_of(self.forbidden))

    def is_asked(self, state: BeamState) -> Any:
        return ops.any(self.forbidden != PAD)

    def allowed(self, state: BeamState, is_allowed) -> Any:
        """The last token of a sequence may not come after all those before it."""
        longest = ops.shape(self.forbidden)[2]
        places = state.position - longest + 1 + ops.arange(longest - 1)  # (M - 1,): of the tokens before this one
        room = ops.shape(state.ids)[2]
        before = ops.take(state.ids, ops.clip(places, 0, ops.maximum(room - 1, 0)), axis=2)  # (B, K, M - 1)
        before = ops.expand_dims(ops.where(places >= 0, before, -1), 2)  # (B, K, 1, M - 1)
        sequences = ops.expand_dims(self.forbidden, 1)  # (B, 1, N, M)
        is_after = ops.logical_or(sequences[..., :-1] == before, sequences[..., :-1] == PAD)
        last = sequences[..., -1]  # (B, 1, N)
        is_complete = ops.logical_and(ops.all(is_after, axis=3), last != PAD)  # (B, K, N)
        is_forbidden = tokens_among(last, is_complete, ops.shape(is_allowed)[2])
        return ops.logical_and(is_allowed, ops.logical_not(is_forbidden))
