"""SearchPlan: everything that a search is told beside its model and its sources."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import keras

from keras_transformer.search.options import SearchOptions
from keras_transformer.search.rules.table import Rules
from keras_transformer.search.short_vocabulary import ShortlistTable


class SearchLoop(NamedTuple):
    """A loop of a search of static shapes, which has room for so many positions of so many sentences.

    It ends as soon as the sentences whose search has not ended fit into a later loop of fewer.
    """

    positions: int
    sentences: int


@dataclasses.dataclass(frozen=True)
class SearchPlan:
    """How to search a batch.

    rules: per-sentence settings; they override `options`, but `limits` can only lower the longest output.
    shortlist: search over the pieces that it lists for a sentence, and the pieces of its rules, alone. Probabilities
    and scores are then over them.
    loops: of static shapes, search in these loops, one after the other. Positions rise, the last ones are at most as
    many as the longest output has; sentences fall, the first ones are all. Every score of a sentence whose search has
    not ended by then is UNFINISHED. With a shortlist, a sentence then has `usual_columns`, and every score of one that
    needs more is UNFINISHED.
    static_shapes: no shape changes from step to step, as XLA and JAX need it: by default on the JAX backend alone.
    """

    options: SearchOptions = SearchOptions()
    rules: Rules = Rules()
    shortlist: ShortlistTable | None = None
    loops: Sequence[SearchLoop] = ()
    static_shapes: bool = dataclasses.field(default_factory=lambda: keras.backend.backend() == "jax")

    def replace(self, **changes) -> "SearchPlan":
        return dataclasses.replace(self, **changes)
