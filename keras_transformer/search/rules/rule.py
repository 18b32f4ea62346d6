"""What a rule of a search can do. Its methods are the places at which a search asks every rule."""

from collections.abc import Callable
from typing import Any, Self

from keras import ops

from keras_transformer.layers.gather import rows_at
from keras_transformer.search.state import BeamState


class Rule:
    """What the sentences of a batch ask of their outputs: a named tuple of arrays, whose axes begin with B.

    The names of the arrays are those by which `Rules.of` takes them. A rule that no sentence can ask for is absent
    while a graph is traced, and costs nothing. What a method returns by default is that of a rule which asks for
    nothing there.
    """

    forces = False  # whether `forced` returns tokens

    @classmethod
    def names(cls) -> tuple[str, ...]:
        kind: Any = cls  # a named tuple
        return kind._fields

    @classmethod
    def of(cls, arrays: dict[str, Any]) -> Self:
        """Return the rule from arrays by name."""
        return cls(*(arrays[name] for name in cls.names()))

    @property
    def looks_at(self) -> int:
        """How many more of the best tokens of a hypothesis `best_by_logits` must look at."""
        return 0

    def of_rows(self, rows) -> Self:
        """Return the rule of some sentences: rows int32 (any number,)."""
        return type(self)(*(rows_at(getattr(self, name), rows) for name in self.names()))

    def of_sources(self, source_ids) -> Self:
        """Return the rule for a search of these sources, int (B, S)."""
        return self

    def needed(self, source_tokens) -> tuple[Any, Any] | None:
        """Return how many tokens it makes each output have, int32 (B,), and a bound, if sources have so many tokens."""

    def pieces(self) -> tuple:
        """Return the pieces that outputs must have, which a short vocabulary must have too: int (B, ...) each."""
        return ()

    def in_columns(self, columns_of: Callable, pieces) -> Self:
        """Return the rule over a short vocabulary. columns_of: from pieces to columns; pieces int32 (C,): of each."""
        return self

    def is_asked(self, state: BeamState) -> Any:
        """Return whether a step needs the probabilities of all tokens under all rules: bool (); None: it never does."""

    def may_come(self, state: BeamState, tokens) -> Any:
        """Return which tokens may come in a step in which no rule is asked; None: all. int32 (B * K, N) -> bool."""

    def changed(self, state: BeamState, log_probs) -> Any:
        """Return the log-probabilities of the next tokens, float32 (B, K, V)."""
        return log_probs

    def allowed(self, state: BeamState, is_allowed) -> Any:
        """Return which tokens may come if, without this rule, these may: both bool, broadcast to (B, K, V)."""
        return is_allowed

    def forced(self, state: BeamState) -> Any:
        """Return the token that each sentence must take now, or PAD if it may choose: int32 (B,); None: any may."""

    def is_free(self, state: BeamState) -> Any:
        """Return of which sentences the token that they must take has the log-probability 0: bool (B,); None: none."""

    def goes_on(self, state: BeamState) -> Any:
        """Return which hypotheses cannot end now, so that a limit cuts them: bool (B, K or 1); None: all can."""


def of_every_hypothesis(state: BeamState, is_allowed):
    """Broadcast what may come, as `allowed` takes it: bool (B, K, V)."""
    return ops.broadcast_to(is_allowed, (*ops.shape(state.log_probs), ops.shape(is_allowed)[2]))


def of_each(rule):
    """(B,) -> (B, 1, 1)"""
    return ops.expand_dims(rule, (1, 2))


def of_hypotheses(rule, beam_size: int):
    """(B,) -> (B * K, 1)"""
    return ops.expand_dims(ops.repeat(rule, beam_size, axis=0), 1)
