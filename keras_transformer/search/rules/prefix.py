"""The rule `prefixes` of a search: the tokens with which an output must begin."""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.ground.tokens import PAD
from keras_transformer.search.rules.rule import Rule
from keras_transformer.search.state import BeamState


class Prefixes(NamedTuple("Prefixes", [("prefixes", Any)]), Rule):  # int32 (B, P), then PAD
    forces = True

    def needed(self, source_tokens) -> tuple[Any, Any]:
        return lengths_of(self.prefixes), ops.shape(self.prefixes)[1]

    def pieces(self) -> tuple:
        return (self.prefixes,)

    def in_columns(self, columns_of, pieces) -> "Prefixes":
        return Prefixes(columns_of(self.prefixes))

    def forced(self, state: BeamState) -> Any:
        nothing = ops.full((ops.shape(self.prefixes)[0], 1), PAD, dtype="int32")
        prefixes = ops.concatenate([self.prefixes, nothing], axis=1)
        return ops.take(prefixes, ops.minimum(state.position, ops.shape(prefixes)[1] - 1), axis=1)

    def goes_on(self, state: BeamState) -> Any:
        return ops.expand_dims(self.forced(state) != PAD, 1)


def lengths_of(prefixes):
    """Return the tokens of each prefix: int32 (B, P) -> int32 (B,)."""
    return ops.sum(ops.cast(prefixes != PAD, "int32"), axis=1)
