"""The rule `endings` of a search: a sentence's output must go on with one of N sequences where its prefix ends.

It is int32 (B, N, M). A sequence is M tokens long or shorter, then PAD; an empty one leaves the sentence free, and one
of -1 does not exist.
"""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.ground.tokens import PAD, SPECIAL
from keras_transformer.search.rules.prefix import lengths_of
from keras_transformer.search.rules.rule import Rule, of_every_hypothesis
from keras_transformer.search.rules.tokens_among import tokens_among
from keras_transformer.search.scores import NEVER
from keras_transformer.search.state import BeamState


class InEnding(NamedTuple):
    """Where the hypotheses of a search are in the endings of their sentences."""

    is_inside: Any  # bool (B, K): which must take a token of an ending now
    is_possible: Any  # bool (B, K, N): which endings go on from what they have
    tokens: Any  # int32 (B, N): the token of each ending that comes now


class Endings(NamedTuple("Endings", [("endings", Any), ("begins", Any)]), Rule):  # begins: int32 (B,), of prefixes
    @classmethod
    def of(cls, arrays) -> "Endings":
        return cls(arrays["endings"], lengths_of(arrays["prefixes"]))

    def needed(self, source_tokens) -> tuple[Any, Any]:
        return ops.max(ops.sum(ops.cast(self.endings > PAD, "int32"), axis=2), axis=1), ops.shape(self.endings)[2]

    def pieces(self) -> tuple:
        return (self.endings,)

    def in_columns(self, columns_of, pieces) -> "Endings":
        return self._replace(endings=columns_of(self.endings))

    def is_asked(self, state: BeamState) -> Any:
        return ops.any(ops.logical_and(self.goes_on(state), state.log_probs > NEVER / 2))

    def goes_on(self, state: BeamState) -> Any:
        nowhere = ops.zeros_like(state.log_probs, dtype="bool")
        return ops.cond(self.may_be_inside(state), lambda: self.compared(state).is_inside, lambda: nowhere)

    def allowed(self, state: BeamState, is_allowed) -> Any:
        is_allowed = of_every_hypothesis(state, is_allowed)

        def restricted():
            is_inside, is_possible, tokens = self.compared(state)
            vocab_size = ops.shape(is_allowed)[2]
            tokens = ops.maximum(ops.expand_dims(tokens, 1), PAD)  # (B, 1, N)
            is_of_ending = tokens_among(tokens, is_possible, vocab_size)
            is_of_ending = ops.logical_and(is_of_ending, ops.arange(vocab_size) > max(SPECIAL))
            return ops.where(ops.expand_dims(is_inside, 2), is_of_ending, is_allowed)

        return ops.cond(self.may_be_inside(state), restricted, lambda: is_allowed)

    def may_be_inside(self, state: BeamState):
        """Return whether the endings of a sentence can reach to this position: bool ()."""
        return ops.any(state.position < self.begins + ops.shape(self.endings)[2])

    def compared(self, state: BeamState) -> InEnding:
        """Compare what the hypotheses have after the rule `prefixes` with the endings."""
        sentences, hypotheses, room = ops.shape(state.ids)
        longest = ops.shape(self.endings)[2]
        count = ops.expand_dims(state.position - self.begins, 1)  # (B, 1): tokens after the prefix
        places = ops.minimum(ops.expand_dims(self.begins, 1) + ops.arange(longest), room)  # (B, M)
        places = ops.broadcast_to(ops.expand_dims(places, 1), (sentences, hypotheses, longest))
        ids = ops.concatenate([state.ids, ops.full((sentences, hypotheses, 1), PAD, dtype="int32")], axis=2)
        written = ops.expand_dims(ops.take_along_axis(ids, places, axis=2), 2)  # (B, K, 1, M)
        is_later = ops.expand_dims(ops.arange(longest) >= count, (1, 2))  # (B, 1, 1, M)
        endings = ops.expand_dims(self.endings, 1)  # (B, 1, N, M)
        agrees = ops.logical_or(endings == written, ops.logical_or(endings == PAD, is_later))
        is_possible = ops.all(agrees, axis=3)
        is_now = ops.arange(longest) == ops.expand_dims(count, 2)  # (B, 1, M)
        tokens = ops.sum(ops.where(is_now, self.endings, PAD), axis=2)
        is_complete = ops.any(ops.logical_and(is_possible, ops.expand_dims(tokens == PAD, 1)), axis=2)
        return InEnding(ops.logical_and(count >= 0, ops.logical_not(is_complete)), is_possible, tokens)
