"""The rule `openings` of a search: the token with which each output begins at no price, since the model is told it.

It is int32 (B,): the piece of the target language (pieces/language_marks.py). Everything else that is asked of the
beginning of an output, such as a prefix, is asked of what follows. The token counts in the length of an output.
"""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.ground.tokens import PAD
from keras_transformer.search.rules.rule import Rule
from keras_transformer.search.state import BeamState


class Openings(NamedTuple("Openings", [("openings", Any)]), Rule):
    forces = True

    def needed(self, source_tokens) -> tuple[Any, Any]:
        return ops.ones_like(self.openings), 1

    def pieces(self) -> tuple:
        return (self.openings,)

    def in_columns(self, columns_of, pieces) -> "Openings":
        return Openings(columns_of(self.openings))

    def forced(self, state: BeamState) -> Any:
        return ops.where(state.position == 0, self.openings, PAD)

    def is_free(self, state: BeamState) -> Any:
        return ops.logical_and(state.position == 0, state.rules.limits > 1)

    def goes_on(self, state: BeamState) -> Any:
        return ops.expand_dims(self.is_free(state), 1)


def prefixes_behind(openings, prefixes):
    """Return the rule `prefixes` of outputs with openings: (B,), int32 (B, P) -> int32 (B, P + 1)."""
    return ops.concatenate([ops.expand_dims(openings, 1), prefixes], axis=1)
