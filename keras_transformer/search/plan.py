"""SearchPlan: everything that a search is told beside its model and its sources."""

import dataclasses
from collections.abc import Sequence

import keras

from keras_transformer.search.options import SearchOptions
from keras_transformer.search.rules.table import Rules
from keras_transformer.search.short_vocabulary import ShortlistTable


@dataclasses.dataclass(frozen=True)
class SearchPlan:
    """How to search a batch.

    rules: per-sentence settings; they override `options`, but `limits` can only lower the longest output.
    shortlist: search over the pieces that it lists for a sentence, and the pieces of its rules, alone. Probabilities
    and scores are then over them.
    positions: of static shapes, search in loops with room for so many positions, rising, the last one at most as many
    as the longest output has. Every score of a sentence whose search has not ended by then is UNFINISHED. With a
    shortlist, a sentence then has `usual_columns`, and every score of one that needs more is UNFINISHED.
    static_shapes: no shape changes from step to step, as XLA and JAX need it: by default on the JAX backend alone.
    """

    options: SearchOptions = SearchOptions()
    rules: Rules = Rules()
    shortlist: ShortlistTable | None = None
    positions: Sequence[int] = ()
    static_shapes: bool = dataclasses.field(default_factory=lambda: keras.backend.backend() == "jax")

    def replace(self, **changes) -> "SearchPlan":
        return dataclasses.replace(self, **changes)
