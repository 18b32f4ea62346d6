"""The rule `min_lengths` of a search: tokens of the shortest output, EOS included."""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.ground.tokens import EOS
from keras_transformer.search.rules.rule import Rule, of_each, of_hypotheses
from keras_transformer.search.state import BeamState


class MinLengths(NamedTuple("MinLengths", [("min_lengths", Any)]), Rule):  # int32 (B,)
    @property
    def looks_at(self) -> int:
        return 1  # EOS

    def may_come(self, state: BeamState, tokens) -> Any:
        is_too_early = of_hypotheses(state.position + 1 < self.min_lengths, state.log_probs.shape[1])
        return ops.logical_not(ops.logical_and(is_too_early, tokens == EOS))

    def allowed(self, state: BeamState, is_allowed) -> Any:
        is_too_early = of_each(state.position + 1 < self.min_lengths)
        is_end = ops.arange(ops.shape(is_allowed)[2]) == EOS
        return ops.logical_and(is_allowed, ops.logical_not(ops.logical_and(is_too_early, is_end)))
